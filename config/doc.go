// Package config is baton's command line: what can be set, how it is written,
// and what is allowed.
//
// Each setting is declared once, in Serve's, Demo's or Admin's list: the field, the flag,
// the default, one sentence, the allowed values. Everything else follows from
// that declaration: the environment variable's name (--migration-limit is
// DYN_MIGRATION_LIMIT), the key of the configuration file, the help text, the
// sentence about a wrong value, --dump-config and docs/flags.md.
//
// A flag beats the environment, the environment beats the file, the file beats
// the default. Only the value that is in force is looked at, so a wrong value
// that a stronger source replaces does no harm. A list is replaced as a whole.
//
// The names are those of NVIDIA Dynamo's frontend where it has them, including
// the few settings that it reads from the environment only, in other units
// (DYN_HTTP_BODY_LIMIT_MB); those are honoured, after the derived name.
//
// A wrong value is a *UsageError: one sentence that names the flag, variable or
// key and says what is allowed.
package config
