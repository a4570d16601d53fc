// Package errno names the error numbers of MariaDB, MySQL and TiDB that mean something to Hub.
package errno

// The server, its load and its accounts.
const (
	TooManyConnections     = 1040
	DatabaseDenied         = 1044
	AccessDenied           = 1045
	UnknownDatabase        = 1049
	Shutdown               = 1053
	UnknownThread          = 1094 // of a KILL: the connection has ended already
	UnknownVariable        = 1193
	TooManyUserConnections = 1203
	LockWaitTimeout        = 1205
	Deadlock               = 1213
	UserLimit              = 1226
	UnknownPlan            = 1243 // of a prepared statement, as behind a proxy that asks another server now
	Killed                 = 1317
	PlanOutdated           = 1615 // a table was altered meanwhile, more than once
	ConnectionKilled       = 1927
	StatementTimeMariaDB   = 1969
	StatementTimeMySQL     = 3024
	ServerOffline          = 3032
	ServerUnavailable      = 3168
)

// The statement, and what its account may do.
const (
	AmbiguousColumn     = 1052
	UnknownColumn       = 1054
	WrongFieldWithGroup = 1055 // with ONLY_FULL_GROUP_BY, like the next one
	MixOfGroupFunctions = 1140
	Syntax              = 1064
	EmptyQuery          = 1065
	TableDenied         = 1142
	ColumnDenied        = 1143
	NoSuchTable         = 1146
	AccessNeeded        = 1227
	NotSupported        = 1235
	IllegalMix          = 1267 // of collations
	InvalidString       = 1300 // in a character set
	NoFunction          = 1305
	NoFunctionHere      = 1630 // where it stands, a built-in one would have no space before its parenthesis
	BrokenView          = 1356
	FunctionDenied      = 1370
	NoDefiner           = 1449 // of a view
	ParameterCount      = 1582
	Parameters          = 1583
	ReadOnlyTransaction = 1792
	Recursion           = 3636
	CannotConvert       = 3854 // a text that a column's character set cannot hold
	UnknownType         = 4161 // of MariaDB
	NeedsHypergraph     = 6037 // such as QUALIFY, of MySQL's other optimizer
)
