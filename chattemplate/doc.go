// Package chattemplate renders chat templates: the Jinja programs with which a
// model says how a conversation becomes its prompt.
//
// A model was trained on prompts that Python wrote: the jinja2 library, as
// transformers sets it up. One blank more or less, a 1.0 that became 1, keys in
// another order, and the model answers worse, without any error. So this package
// is no template engine with Jinja's syntax; it is that program, byte for byte,
// on the part of the language that templates can reach. Its tests compare with
// recorded results of transformers itself.
//
// # The way of a template
//
//	source ─ lexer ─▶ tokens ─ parser ─▶ closures        Parse, once per model
//	JSON ─ jsonin ─▶ values ─ closures ─▶ prompt          Render, once per request
//
// The lexer (lexer.go, literals.go) decides who owns which white space. The
// parser (parser.go, statements.go, loop.go, macro.go, symbols.go; for expressions
// expressions.go, primary.go, calls.go, filtering.go) makes a tree of closures;
// there is no syntax tree. Running them needs Python's
// values (value.go, dict.go) and what Python does with them: numbers.go,
// compare.go, text.go (str and repr), tojson.go, access.go (attributes, items,
// slices), iterate.go, unicode.go, and the three ways of formatting in format*.go.
// The rest is what templates call: filters*.go, tests.go, methods*.go, globals.go,
// strftime.go.
//
// conversation.go turns an Input into the variables of a template. There also is
// continue_final_message, which is not Jinja: transformers marks the end of the
// last message with a text, renders, and cuts there. select.go picks the template
// among a model's files.
//
// # Errors
//
// Where Python raises, Render returns an error, so that a request that the model
// cannot be asked is refused, and not answered from half a prompt: *RaisedError
// for a template's own raise_exception, *InputError for the others. Numbers,
// operators and undefined names are as strict as Python's.
//
// # Limits
//
// Templates come from model repositories and conversations from clients; neither
// is trusted. Size, nesting, recursion, work, memory and output are limited
// (limits.go), and going over is a *LimitError. A fault of the package itself is an
// *InternalError, never a panic.
//
// # What differs
//
// Not there: including and extending other templates (there are none; as in
// transformers that fails when it is reached), the tag autoescape, self and super
// of blocks, the escape \N{...}, complex numbers, the filters random, pprint,
// urlize and wordwrap and the function lipsum, the str methods encode, casefold,
// translate and maketrans, and the set operators of dict views. What Python prints
// with an address in memory is printed without, and a namespace that holds itself
// is over a limit. Jinja computes constant
// expressions while it compiles and then forgives some errors in them, such as a
// slice of a number: here they are errors. Half a surrogate pair becomes U+FFFD,
// where Python keeps it and fails later.
package chattemplate
