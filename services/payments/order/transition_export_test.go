package order

// TransitionOf is the table's answer about a step.
var TransitionOf = transition
