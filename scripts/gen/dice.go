package main

import (
	"math/bits"
	"math/rand/v2"
	"sort"
)

// Every random choice in this program comes from a dice that is seeded with what
// the choice is about (seed, purpose, id) and never with when it is made. A row is
// therefore a pure function of its id: rows can be computed in any order, twice, or
// on their own, and always come out the same.
//
// Only rand.PCG's raw output is used. Its stream is fixed by its algorithm, whereas
// the helpers on rand.Rand may change between Go releases.
type dice struct{ pcg rand.PCG }

// purpose separates the random streams, so that changing how one column is made
// leaves all others alone.
type purpose uint64

const (
	forPartner purpose = iota + 1
	forAdmin
	forBrand
	forBrandOwner
	forCampaign
	forCampaignBrand
	forCampaignText
	forDeposit
	forDepositBrand
	forDepositTime
	forMember
	forApplication
	forApplicationCampaign
	forApplicant
	forReview
	forReviewCampaign
	forAdminOwner
	forPartnerWeight
	forBrandWeight
	forDepositWeight
	forCampaignWeight
	forSelection
)

// roll is the dice for one purpose and id.
func roll(seed uint64, what purpose, id int64) dice {
	var d dice
	d.pcg.Seed(mix(seed^mix(uint64(what))), uint64(id))
	return d
}

// mix is the finaliser of splitmix64: a bijection that spreads every input bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below answers a number in [0, n). Its bias, at most n/2^64, does not matter here.
func (d *dice) below(n int64) int64 {
	hi, _ := bits.Mul64(d.pcg.Uint64(), uint64(n))
	return int64(hi)
}

// between answers a number in [lo, hi].
func (d *dice) between(lo, hi int64) int64 { return lo + d.below(hi-lo+1) }

// percent is true p times in a hundred.
func (d *dice) percent(p int64) bool { return d.below(100) < p }

// pick answers one element; each is as likely.
func pick[T any](d *dice, list []T) T { return list[d.below(int64(len(list)))] }

// heavy answers a weight with a long tail: most results are near the least, a few
// are a hundred times larger.
func (d *dice) heavy() uint64 { return uint64(1_000_000_000 / (8_000 + d.below(1_000_000))) }

// shuffle is a fixed permutation of [0, n) that needs no table: multiplications by
// odd numbers and xor-shifts, each a bijection on a power of two, repeated until the
// result is below n (on average less than twice).
//
// With a window, positions move only within their block of that many. That keeps
// neighbours near each other, as rows of one time are in a real table.
type shuffle struct {
	key    uint64
	n      int64
	window int64 // 0: the whole range
}

// at is where a position goes.
func (s shuffle) at(i int64) int64 {
	if s.window == 0 {
		return permute(s.key, s.n, i)
	}
	block := i / s.window
	start := block * s.window
	return start + permute(s.key^mix(uint64(block)), min(s.window, s.n-start), i-start)
}

// permute is a bijection on [0, n), chosen by the key.
func permute(key uint64, n, i int64) int64 {
	if n < 2 {
		return i
	}
	width := bits.Len64(uint64(n - 1))
	mask := uint64(1)<<width - 1
	half := (width + 1) / 2
	x, k := uint64(i), mix(key)
	for {
		for round := range 3 {
			m := k>>(8*round) | 1
			x = (x*m + k) & mask
			x ^= x >> half
		}
		if x < uint64(n) {
			return int64(x)
		}
	}
}

// shares says how many children each parent has, as running totals: parent i
// (from 0) owns the places [ends[i-1], ends[i]).
type shares []uint32

// share divides total among len(weights) parents in proportion to their weights;
// the sum is exact. With atLeastOne no parent of a positive weight goes empty (as
// far as total allows). A weight of 0 always stays empty.
func share(total int64, weights []uint64, atLeastOne bool) shares {
	var sum, base uint64
	for _, w := range weights {
		sum += w
		if w > 0 && atLeastOne {
			base++
		}
	}
	rest := uint64(total) - base
	if base > uint64(total) {
		base, rest = 0, uint64(total)
	}
	ends := make(shares, len(weights))
	var running, given uint64
	for i, w := range weights {
		running += w
		if w > 0 && base > 0 {
			given++
		}
		if sum > 0 {
			// 128 bits, because a product of two large numbers would overflow.
			hi, lo := bits.Mul64(rest, running)
			part, _ := bits.Div64(hi, lo, sum)
			ends[i] = uint32(given + part)
		}
	}
	return ends
}

// total is how many children there are.
func (s shares) total() int64 {
	if len(s) == 0 {
		return 0
	}
	return int64(s[len(s)-1])
}

// count answers how many children parent i (from 0) has.
func (s shares) count(i int64) int64 {
	if i == 0 {
		return int64(s[0])
	}
	return int64(s[i] - s[i-1])
}

// owner answers whose child a place is, and which of its children (both from 0).
// It is a binary search: no table of children is kept.
func (s shares) owner(place int64) (parent, ordinal int64) {
	i := sort.Search(len(s), func(i int) bool { return int64(s[i]) > place })
	if i == 0 {
		return 0, place
	}
	return int64(i), place - int64(s[i-1])
}
