package mysql

import (
	"context"
	"os"
	"sort"
	"testing"
	"time"
	"fmt"

	"hub.internal/services/query"
)

func TestZZPlay(t *testing.T) {
	db := os.Getenv("PLAYDB")
	if db == "" { t.Skip() }
	s, err := Open("r:r@tcp(127.0.0.1:33990)/"+db, Options{})
	if err != nil { t.Fatal(err) }
	defer s.Close()
	ctx := context.Background()
	page := query.Page{Limit: 50}
	last := time.Date(2026,1,1,0,0,0,0,time.UTC)
	n := int64(10)
	pid := int64(77)
	run := func(name string, f func() (int, error)) {
		var ds []time.Duration
		rows := 0
		start := time.Now()
		for i := 0; i < 100 && (i < 3 || time.Since(start) < 2*time.Second); i++ {
			b := time.Now()
			r, err := f()
			if err != nil { t.Error(name, err); return }
			rows = r
			ds = append(ds, time.Since(b))
		}
		sort.Slice(ds, func(i, j int) bool { return ds[i] < ds[j] })
		fmt.Printf("%-40s rows %3d p50 %8.2f ms p90 %8.2f\n", name, rows, ds[len(ds)/2].Seconds()*1000, ds[len(ds)*9/10].Seconds()*1000)
	}
	brands := func(f query.BrandFilter) func() (int, error) { f.Page = page; return func() (int, error) { r, err := s.SearchBrands(ctx, f); return len(r), err } }
	camps := func(f query.CampaignFilter) func() (int, error) { f.Page = page; return func() (int, error) { r, err := s.SearchCampaigns(ctx, f); return len(r), err } }
	run("brands all", brands(query.BrandFilter{}))
	run("brands verified", brands(query.BrandFilter{VerifiedContact: true}))
	run("brands verified after", brands(query.BrandFilter{VerifiedContact: true, LastCampaignAfter: last}))
	run("brands verified before", brands(query.BrandFilter{VerifiedContact: true, LastCampaignBefore: last}))
	run("brands before 2023", brands(query.BrandFilter{LastCampaignBefore: last.AddDate(-3,0,0)}))
	run("brands country VN verified", brands(query.BrandFilter{VerifiedContact: true, CountryCode: "VN"}))
	run("brands cat leaf", brands(query.BrandFilter{Category: &query.CategoryScope{IDs: []int64{101}}}))
	run("brands cat leaf verified", brands(query.BrandFilter{Category: &query.CategoryScope{IDs: []int64{101}}, VerifiedContact: true}))
	run("brands cat 2001 verified", brands(query.BrandFilter{Category: &query.CategoryScope{IDs: []int64{2001}, Brands: 9396, AllBrands: 90000}, VerifiedContact: true}))
	run("brands cat kw", brands(query.BrandFilter{Category: &query.CategoryScope{IDs: []int64{101}}, Keyword: "김"}))
	run("brands keyword", brands(query.BrandFilter{Keyword: "김"}))
	run("brands keyword rare", brands(query.BrandFilter{Keyword: "100%"}))
	run("campaigns all", camps(query.CampaignFilter{}))
	run("campaigns status", camps(query.CampaignFilter{StatusCodes: []string{"1209","1206"}}))
	run("campaigns other status", camps(query.CampaignFilter{StatusCodes: []string{"9999","1206"}}))
	run("campaigns min apply", camps(query.CampaignFilter{MinApplyCount: &n}))
	big := int64(1000000)
	run("campaigns min apply huge", camps(query.CampaignFilter{MinApplyCount: &big}))
	run("campaigns partner", camps(query.CampaignFilter{PartnerID: &pid}))
	run("campaigns after", camps(query.CampaignFilter{StartedAfter: last}))
	run("campaigns keyword", camps(query.CampaignFilter{Keyword: "a"}))
	run("campaigns keyword rare", camps(query.CampaignFilter{Keyword: "zzzz"}))
	i := int64(0)
	run("brand", func() (int, error) { i++; b, err := s.Brand(ctx, i, 5); if b == nil { return 0, err }; return 1, err })
	run("contacts", func() (int, error) { i++; b, err := s.PartnerContacts(ctx, i, false); if b == nil { return 0, err }; return 1, err })
	run("performance", func() (int, error) { i++; b, err := s.CampaignCounts(ctx, i); if b == nil { return 0, err }; return 1, err })
	run("categories", func() (int, error) { b, err := s.Categories(ctx, 0, "ja"); return len(b), err })
	run("tables", func() (int, error) { b, err := s.Tables(ctx); return len(b), err })
	run("columns", func() (int, error) { b, err := s.TableColumns(ctx, "campaign"); return len(b.Columns), err })
	run("ddl", func() (int, error) { b, err := s.TableDDL(ctx, "campaign", true); return len(b.Columns), err })
}
