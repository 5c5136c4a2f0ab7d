// Package pattern matches the regular expressions by which tokenizer files
// split text into words.
//
// They are written for Oniguruma (Ruby syntax) and need what Go's regexp has
// not: lookahead, possessive repeats, class intersection, and leftmost-first
// choice together with all of that. They are short, so a small backtracking
// matcher over UTF-8 bytes serves them, faster than a general engine: each
// alternative knows the bytes that it can begin with, each class has a table.
//
// What the package does not know (back references, lookbehind over more than a
// character, POSIX brackets, ...) is an error at compile time. A hostile
// expression costs bounded time: a match that takes over [MaxBacktracks] steps
// back counts as no match, as in Oniguruma, and so does the rest of a text that
// used up its own allowance.
package pattern
