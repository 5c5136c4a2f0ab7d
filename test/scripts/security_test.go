package scripts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// certs NAME makes an authority NAME.pem and, signed by it, a server's
// certificate for this machine, NAME-server.pem with NAME-server.key, and a
// client's, NAME-client.pem with NAME-client.key.
func makeCerts(ts *testscript.TestScript, neg bool, args []string) {
	name := args[0]
	ca, caKey := signed(ts, name, nil, nil)
	writePEM(ts, name+".pem", "CERTIFICATE", ca.Raw)
	for _, end := range []string{"-server", "-client"} {
		cert, key := signed(ts, name+end, ca, caKey)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		ts.Check(err)
		writePEM(ts, name+end+".pem", "CERTIFICATE", cert.Raw)
		writePEM(ts, name+end+".key", "PRIVATE KEY", der)
	}
}

// signed makes a certificate; without a parent, an authority.
func signed(ts *testscript.TestScript, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
	}
	if parent == nil {
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	ts.Check(err)
	cert, err := x509.ParseCertificate(der)
	ts.Check(err)
	return cert, key
}

func writePEM(ts *testscript.TestScript, name, kind string, der []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// knock [FLAGS] STATUS URL REGEXP... polls, as the client that the flags
// describe, until the answer (its protocol and status, its headers, its body) has
// the status and matches all; "tls" is the status of a failed handshake.
//
//	-now            look once
//	-for DURATION   look again and again for so long; each answer must be so
//	-ca NAME        trust this authority
//	-cert NAME      show this client certificate
//	-key FILE       present the key in this file as Bearer
//	-origin ORIGIN  come from a page of this origin
//	-preflight      ask as a browser does before a POST
//	-chat PROMPT    ask for a streamed answer
//	-server NAME    the server must show this certificate
func knock(ts *testscript.TestScript, neg bool, args []string) {
	flags := flag.NewFlagSet("knock", flag.ContinueOnError)
	v := &visitor{ts: ts}
	now := flags.Bool("now", false, "")
	lasting := flags.Duration("for", 0, "")
	flags.StringVar(&v.ca, "ca", "", "")
	flags.StringVar(&v.cert, "cert", "", "")
	flags.StringVar(&v.key, "key", "", "")
	flags.StringVar(&v.origin, "origin", "", "")
	flags.BoolVar(&v.preflight, "preflight", false, "")
	flags.StringVar(&v.chat, "chat", "", "")
	flags.StringVar(&v.server, "server", "", "")
	ts.Check(flags.Parse(args))
	if args = flags.Args(); len(args) < 2 {
		ts.Fatalf("usage: knock [FLAGS] STATUS URL REGEXP...")
	}
	deadline, enough := time.Now().Add(patience), time.Now().Add(*lasting)
	for {
		status, answer := v.visit(args[1])
		good := status == args[0]
		for _, pattern := range args[2:] {
			good = good && regexp.MustCompile(pattern).MatchString(answer)
		}
		if good && !time.Now().Before(enough) {
			return
		}
		if !good && (*now || *lasting > 0) || time.Now().After(deadline) {
			ts.Fatalf("%s: status %s (want %s): %s", args[1], status, args[0], answer)
		}
		time.Sleep(20 * time.Millisecond) // polls a real process
	}
}

type visitor struct {
	ts                                  *testscript.TestScript
	ca, cert, key, origin, chat, server string
	preflight                           bool
}

// visit makes one request on a connection of its own.
func (v *visitor) visit(address string) (status, answer string) {
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if v.ca != "" {
		config.RootCAs.AppendCertsFromPEM([]byte(v.ts.ReadFile(v.ca + ".pem")))
	}
	if v.cert != "" {
		pair, err := tls.X509KeyPair([]byte(v.ts.ReadFile(v.cert+".pem")), []byte(v.ts.ReadFile(v.cert+".key")))
		v.ts.Check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	if v.server != "" {
		config.VerifyConnection = func(s tls.ConnectionState) error {
			if got := s.PeerCertificates[0].Subject.CommonName; got != v.server {
				return fmt.Errorf("the server is %s", got)
			}
			return nil
		}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: 10 * time.Second}
	resp, err := client.Do(v.request(address))
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused", ""
	case isTLSError(err):
		return "tls", err.Error()
	case err != nil:
		return err.Error(), ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err.Error(), ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d\n", resp.Proto, resp.StatusCode)
	v.ts.Check(resp.Header.Write(&b))
	return fmt.Sprint(resp.StatusCode), strings.ReplaceAll(b.String(), "\r\n", "\n") + "\n" + string(body)
}

func (v *visitor) request(address string) *http.Request {
	method, body := http.MethodGet, ""
	switch {
	case v.preflight:
		method = http.MethodOptions
	case v.chat != "":
		method = http.MethodPost
		body = fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%q}],"max_tokens":20,"stream":true}`, v.chat)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	v.ts.Check(err)
	if v.key != "" {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(v.ts.ReadFile(v.key)))
	}
	if v.origin != "" {
		req.Header.Set("Origin", v.origin)
	}
	if v.preflight {
		req.Header.Set("Access-Control-Request-Method", "POST")
		req.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
	}
	return req
}

func isTLSError(err error) bool {
	if err == nil {
		return false
	}
	var unknown *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &unknown) || errors.As(err, &record) || strings.Contains(err.Error(), "tls: ")
}

// guard PORT BEHIND NAME FILE puts, until the end of the script, a guard with the
// certificate NAME before the worker at the port BEHIND. It lets requests in
// that present the key which FILE holds then.
func guard(ts *testscript.TestScript, neg bool, args []string) {
	pair, err := tls.LoadX509KeyPair(ts.MkAbs(args[2]+".pem"), ts.MkAbs(args[2]+".key"))
	ts.Check(err)
	listener, err := tls.Listen("tcp", "127.0.0.1:"+args[0], &tls.Config{Certificates: []tls.Certificate{pair}})
	ts.Check(err)
	keyFile := ts.MkAbs(args[3])
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + args[1]})
	proxy.FlushInterval = -1
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, _ := os.ReadFile(keyFile)
		if r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(string(key)) {
			http.Error(w, "who is "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}), ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(listener) }()
	ts.Defer(func() { server.Close(); <-done })
}

// tlsfront PORT BEHIND NAME speaks TLS, until the end of the script, for the
// worker at the port BEHIND. It ends a connection as the kernel does for a
// process that is killed: without a word of TLS.
func tlsFront(ts *testscript.TestScript, neg bool, args []string) {
	pair, err := tls.LoadX509KeyPair(ts.MkAbs(args[2]+".pem"), ts.MkAbs(args[2]+".key"))
	ts.Check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	ts.Check(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", "127.0.0.1:"+args[1])
			if err != nil {
				raw.Close()
				continue
			}
			conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{pair}})
			for _, way := range [][2]net.Conn{{conn, behind}, {behind, conn}} {
				go func() { // ends with its connections, at the latest with the worker's process
					io.Copy(way[0], way[1])
					raw.Close()
					behind.Close()
				}()
			}
		}
	}()
	ts.Defer(func() { listener.Close(); <-done })
}
