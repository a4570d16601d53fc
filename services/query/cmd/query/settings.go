package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"hub.internal/pkg/config"
	"hub.internal/pkg/service"
)

type settings struct {
	service.Settings
	SourceDSN       config.Secret `env:"HUB_SOURCE_DSN"`
	SourceDSNs      config.Secret `env:"HUB_SOURCE_DSNS"`
	SourceCA        config.Secret `env:"HUB_SOURCE_CA"`
	SourceCert      config.Secret `env:"HUB_SOURCE_CERT"`
	SourceKey       config.Secret `env:"HUB_SOURCE_KEY"`
	SourceServerKey config.Secret `env:"HUB_SOURCE_SERVER_KEY"`
	SourceMaxLag    time.Duration `env:"HUB_SOURCE_MAX_LAG" envDefault:"10s"`
	SourceLagSQL    string        `env:"HUB_SOURCE_LAG_SQL"`
	SourcePool      int           `env:"HUB_SOURCE_POOL" envDefault:"16"`
	MaxRowLimit     int           `env:"MCP_MAX_ROW_LIMIT" envDefault:"1000"`
	QueryTimeoutMS  int64         `env:"MCP_QUERY_TIMEOUT_MS" envDefault:"30000"`
	MaxResultBytes  int           `env:"HUB_MAX_RESULT_BYTES" envDefault:"16777216"`
	SQLConcurrent   int           `env:"HUB_SQL_CONCURRENT" envDefault:"8"`
	SQLPerKey       int           `env:"HUB_SQL_PER_KEY"` // 0 is half of HUB_SQL_CONCURRENT
	SQLWait         time.Duration `env:"HUB_SQL_WAIT" envDefault:"2s"`
	SQLFunctions    []string      `env:"HUB_SQL_FUNCTIONS"`
	SQLTmpBytes     int64         `env:"HUB_SQL_TMP_BYTES" envDefault:"536870912"`
}

// Check judges what the types of the settings do not.
func (s settings) Check() error {
	for i, f := range s.SQLFunctions {
		s.SQLFunctions[i] = strings.TrimSpace(f)
	}
	for setting, n := range map[string]int64{"HUB_SOURCE_POOL": int64(s.SourcePool), "MCP_MAX_ROW_LIMIT": int64(s.MaxRowLimit),
		"MCP_QUERY_TIMEOUT_MS": s.QueryTimeoutMS,
		"HUB_MAX_RESULT_BYTES": int64(s.MaxResultBytes), "HUB_SQL_CONCURRENT": int64(s.SQLConcurrent), "HUB_SQL_WAIT": int64(s.SQLWait),
		"HUB_SQL_TMP_BYTES": s.SQLTmpBytes, "HUB_SOURCE_MAX_LAG": int64(s.SourceMaxLag)} {
		if n < 1 {
			return fmt.Errorf("%s has to be positive, not %d", setting, n)
		}
	}
	switch one, several := s.SourceDSN != "", s.SourceDSNs != ""; {
	case one && several:
		return errors.New("both HUB_SOURCE_DSN and HUB_SOURCE_DSNS are set: the first is for one server, the second for replicas")
	case !one && !several:
		return errors.New("HUB_SOURCE_DSN has to be set, or HUB_SOURCE_DSNS for a source on several servers")
	}
	return nil
}

func (s settings) timeout() time.Duration { return time.Duration(s.QueryTimeoutMS) * time.Millisecond }
