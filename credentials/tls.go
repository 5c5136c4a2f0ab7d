package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"time"
)

// ServerTLS returns the configuration of a port that speaks TLS (1.2 or later),
// and HTTP/2 over it, with the certificate and the private key in two PEM files.
// If clientCAs is there, a PEM file too, clients must show a certificate that one
// of its authorities has signed.
//
// New handshakes use what the files hold then.
func ServerTLS(certificate, key, clientCAs File, log *slog.Logger) (*tls.Config, error) {
	own, err := watch(log, func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err != nil {
			return nil, fmt.Errorf("%v and %v: %w", certificate, key, err)
		}
		if leaf := pair.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
			log.Warn("the certificate has expired, so clients will not trust it", "file", certificate.String(), "since", leaf.NotAfter)
		}
		return &pair, nil
	}, certificate, key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.get(), nil },
	}
	if clientCAs.Path == "" {
		return config, nil
	}
	authorities, err := watch(log, func(contents [][]byte) (*x509.CertPool, error) {
		return parseAuthorities(clientCAs, contents[0])
	}, clientCAs)
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	// A session ticket would let its holder in without the client's private key, and
	// would show the certificate of before a renewal.
	config.SessionTicketsDisabled = true
	base := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := base.Clone()
		c.ClientCAs = authorities.get()
		return c, nil
	}
	return config, nil
}

// parseAuthorities is stricter than x509.CertPool, which passes over certificates
// that it cannot read.
func parseAuthorities(file File, content []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for {
		var block *pem.Block
		block, content = pem.Decode(content)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%v: certificate %d: %w", file, n, err)
		}
		pool.AddCert(c)
	}
	if n == 0 {
		return nil, fmt.Errorf("%v: there is no PEM certificate in the file", file)
	}
	return pool, nil
}
