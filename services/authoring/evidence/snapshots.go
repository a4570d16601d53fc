package evidence

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"hub.internal/pkg/tool"
)

// Snapshots is what was noticed of a segment's targets while they were read.
type Snapshots struct {
	// IDs are those of the targets.
	IDs []int64
	// Empty are the ids of those whose snapshot has no member.
	Empty []int64
	// mismatched counts the targets whose snapshot is of something else, swapped those of them whose externalId is another id of
	// the snapshot: by its kind.
	mismatched int
	swapped    map[string]int
	// first is a stray: its place, its ids.
	first struct {
		index                int
		externalID, snapshot int64
	}
}

// IsEmpty tells that an object has no member.
func IsEmpty(object []byte) bool { return len(bytes.Trim(object, "{} \t\r\n")) == 0 }

// Add notices a target of a segment of a kind.
func (t *Snapshots) Add(kind string, externalID int64, snapshot []byte) {
	t.IDs = append(t.IDs, externalID)
	if IsEmpty(snapshot) {
		t.Empty = append(t.Empty, externalID)
		return
	}
	if Is(kind, externalID, snapshot) {
		return
	}
	ids := IDs(snapshot)
	own, has := ids[kind]
	if !has {
		own, has = ids[AnyID]
	}
	if !has || own == externalID {
		return
	}
	if t.mismatched++; t.mismatched == 1 {
		t.first.index, t.first.externalID, t.first.snapshot = len(t.IDs)-1, externalID, own
	}
	for _, other := range kinds {
		if id, there := ids[other]; there && id == externalID {
			if t.swapped == nil {
				t.swapped = map[string]int{}
			}
			t.swapped[other]++
			return
		}
	}
}

// Warning says of how many targets the snapshot is another's.
func (t Snapshots) Warning(kind string) *tool.Warning {
	if t.mismatched == 0 {
		return nil
	}
	m := fmt.Sprintf("%d of %d targets have the snapshot of another %s, the first is target %d: externalId %d, and %d in its snapshot",
		t.mismatched, len(t.IDs), kind, t.first.index, t.first.externalID, t.first.snapshot)
	for _, other := range kinds {
		if n := t.swapped[other]; n > 0 {
			m += fmt.Sprintf("; of %d the externalId is the snapshot's %s_id, so kind %s may be meant", n, other, other)
		}
	}
	return &tool.Warning{Rule: "segment.snapshot", Message: m + fmt.Sprintf(
		": make the segment again with the %s_id of each row as externalId, and that row as its snapshot", kind)}
}

// Shown is what reviewers see of a partner: the snapshot itself where there is one, a list where there are several.
func Shown(snapshots []string) json.RawMessage {
	switch len(snapshots) {
	case 0:
		return nil
	case 1:
		return json.RawMessage(snapshots[0])
	}
	return json.RawMessage("[" + strings.Join(snapshots, ",") + "]")
}
