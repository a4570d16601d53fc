package localserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// slots is how many parts the keys of a Redis Cluster fall into.
const slots = 16384

// JoinRedis makes a cluster of nodes that are empty (Options.ClusterPort): each master holds its share of the
// slots, and the replica copies the first. It returns when every node knows that the cluster is whole.
func JoinRedis(ctx context.Context, masters []*Redis, replica *Redis) error {
	nodes := append([]*Redis{replica}, masters...)
	// Each node needs an epoch of its own, or two would claim one slot.
	for i, m := range masters {
		first, last := i*slots/len(masters), (i+1)*slots/len(masters)-1
		if err := m.Do(ctx, fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1),
			fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", first, last)); err != nil {
			return err
		}
	}
	for _, n := range nodes[1:] {
		if err := nodes[0].Do(ctx, fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", n.port, n.opts.ClusterPort)); err != nil {
			return err
		}
	}
	whole := func(n *Redis) bool {
		info, err := n.Ask(ctx, "CLUSTER INFO")
		return err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(nodes)))
	}
	if err := await(ctx, nodes, whole); err != nil {
		return err
	}
	id, err := masters[0].Ask(ctx, "CLUSTER MYID")
	if err != nil {
		return err
	}
	if err := replica.Do(ctx, "CLUSTER REPLICATE "+id); err != nil {
		return err
	}
	return await(ctx, nodes, func(n *Redis) bool {
		info, err := n.Ask(ctx, "CLUSTER NODES")
		if err != nil || !strings.Contains(info, "slave "+id) {
			return false
		}
		copied, err := replica.Ask(ctx, "INFO replication")
		return err == nil && strings.Contains(copied, "master_link_status:up")
	})
}

// await asks the nodes, one after the other, until each has agreed.
func await(ctx context.Context, nodes []*Redis, agrees func(*Redis) bool) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return Poll(ctx, nil, 10*time.Millisecond, func() error {
		for len(nodes) > 0 && agrees(nodes[0]) {
			nodes = nodes[1:]
		}
		if len(nodes) > 0 {
			return errors.New("the Redis cluster does not come about")
		}
		return nil
	})
}
