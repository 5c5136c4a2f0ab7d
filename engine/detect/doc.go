// Package detect finds out which engine answers at an address, by asking for the
// few documents that only one of them has. What was configured should win over
// it; it is for people who give nothing but a URL.
package detect
