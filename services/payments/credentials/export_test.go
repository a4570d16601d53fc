package credentials

// Mask opens the rule to its test.
var Mask = mask
