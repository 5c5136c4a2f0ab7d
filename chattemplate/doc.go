// Package chattemplate renders chat templates: the Jinja programs with which a
// model says how a conversation becomes its prompt.
package chattemplate
