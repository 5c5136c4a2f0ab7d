package main

import (
	"crypto/tls"
	"log/slog"
	"net"

	"baton/config"
	"baton/credentials"
)

// security is what clients must show at the API's port, and what workers are shown.
type security struct {
	tls       *tls.Config           // of the API's port; nil = it speaks plain HTTP
	knowsKey  func(key string) bool // a client's; nil = none is needed
	workerKey func() string         // nil = workers get none
}

// loadSecurity reads the files that the flags name. Its errors are sentences that
// name the flags.
func loadSecurity(cfg *config.Serve, log *slog.Logger) (*security, error) {
	s := &security{}
	var err error
	if s.tls, err = apiTLS(cfg, log); err != nil {
		return nil, err
	}
	if cfg.APIKeyFile != "" {
		keys, err := credentials.NewKeys(credentials.File{Flag: "--api-key-file", Path: cfg.APIKeyFile}, log)
		if err != nil {
			return nil, err
		}
		s.knowsKey = keys.Has
	}
	if cfg.WorkerAPIKeyFile != "" {
		key, err := credentials.NewKey(credentials.File{Flag: "--worker-api-key-file", Path: cfg.WorkerAPIKeyFile}, log)
		if err != nil {
			return nil, err
		}
		s.workerKey = key.Get
	}
	return s, nil
}

func apiTLS(cfg *config.Serve, log *slog.Logger) (*tls.Config, error) {
	certificate := credentials.File{Flag: "--tls-cert-path", Path: cfg.TLSCertPath}
	key := credentials.File{Flag: "--tls-key-path", Path: cfg.TLSKeyPath}
	clientCAs := credentials.File{Flag: "--tls-client-ca-cert-path", Path: cfg.TLSClientCAPath}
	if certificate.Path == "" {
		return nil, nil
	}
	return credentials.ServerTLS(certificate, key, clientCAs, log)
}

// behind returns l, such that its connections speak TLS if they are to.
func (s *security) behind(l net.Listener) net.Listener {
	if s.tls == nil {
		return l
	}
	return tls.NewListener(l, s.tls)
}

// logSecurity is the part of the log's start that an auditor looks for.
func logSecurity(cfg *config.Serve, log *slog.Logger) {
	log.Info("security", "tls", cfg.TLSCertPath != "", "client_certificates", cfg.TLSClientCAPath != "",
		"client_keys", cfg.APIKeyFile != "", "worker_key", cfg.WorkerAPIKeyFile != "", "cors_origins", cfg.CORSOrigins)
}

// origins are the settings as the server package takes them.
func origins(cfg *config.Serve) []string {
	var list []string
	for _, o := range cfg.CORSOrigins {
		list = append(list, o.String())
	}
	return list
}
