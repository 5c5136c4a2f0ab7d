package engine

// A Thought says that an answer begins with reasoning, which the Constraint of the
// request does not reach.
type Thought struct {
	// Opens are the tokens that open it: an answer that begins with none of them
	// has none. No tokens: the prompt has opened it.
	Opens []TokenID
	// Ends are the tokens behind which the constrained answer begins: the last one,
	// where the others began what it ends. Other tokens may stand before it: gpt-oss
	// can say of its final message that it is JSON.
	Ends []TokenID
}
