package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var silent = slog.New(slog.DiscardHandler)

// write makes a file and sets when it was modified: in a bubble, the file
// system's clock is far ahead.
func write(t *testing.T, path, content string, modified time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, modified, modified); err != nil {
		t.Fatal(err)
	}
}

func TestParseKeys(t *testing.T) {
	for content, want := range map[string]string{
		"a":                                   "a",
		"a\nb\n":                              "a b",
		"\ufeffa\r\n\r\nb\r\n":                "a b",
		"# people\n  a \t# anna\n\tb\n#c\n #": "a b",
		"sk-a#b=/+~\"\\":                      "sk-a#b=/+~\"\\",
		strings.Repeat("k", maxKeyBytes):      strings.Repeat("k", maxKeyBytes),
	} {
		got, err := parseKeys(File{"--f", "p"}, []byte(content))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
	for content, want := range map[string]string{
		"":                                    "--f p: there is no key in the file; write one a line",
		"\n# a\n\n":                           "--f p: there is no key in the file; write one a line",
		"ok\ns3cret one":                      "--f p: line 2: there is a blank inside the key; write one key a line, without a word such as Bearer before it",
		"s3\x00cret":                          "--f p: line 1: there is a control character in the key",
		"s3\rcret":                            "--f p: line 1: there is a control character in the key",
		"s3cret\x7f":                          "--f p: line 1: there is a control character in the key",
		"\n\ns3crét":                          "--f p: line 3: there is a character in the key that is not ASCII",
		"s3cret\xff":                          "--f p: line 1: there is a character in the key that is not ASCII",
		strings.Repeat("k", maxKeyBytes+1):    "--f p: line 1: the key is longer than 4096 bytes",
		strings.Repeat("k\n", maxKeys+1):      "--f p: there are more than 10000 keys in the file",
		"-----BEGIN PRIVATE KEY-----\ns3cret": "--f p: line 1: there is a blank inside the key; write one key a line, without a word such as Bearer before it",
	} {
		_, err := parseKeys(File{"--f", "p"}, []byte(content))
		if err == nil || err.Error() != want {
			t.Errorf("%.40q:\ngot  %v\nwant %s", content, err, want)
		}
	}
}

// At the start every file that cannot be used is one sentence.
func TestFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("empty"), "", time.Now())
	write(t, path("two"), "s3cret1\ns3cret2\n", time.Now())
	write(t, path("long"), strings.Repeat("#", maxFileBytes+1), time.Now())
	newKeys := func(f File) error { _, err := NewKeys(f, silent); return err }
	newKey := func(f File) error { _, err := NewKey(f, silent); return err }
	tests := []struct {
		open func(File) error
		name string
		want string
	}{
		{newKeys, "none", "no such file or directory"},
		{newKeys, ".", "this is a folder, not a file"},
		{newKeys, "empty", "there is no key in the file; write one a line"},
		{newKeys, "long", "the file is longer than 1048576 bytes"},
		{newKey, "two", "there are 2 keys in the file, but only one can be presented"},
	}
	for _, tt := range tests {
		err := tt.open(File{"--api-key-file", path(tt.name)})
		if want := "--api-key-file " + path(tt.name) + ": " + tt.want; err == nil || err.Error() != want && !(runtime.GOOS == "windows" && tt.name == "none") {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if runtime.GOOS != "windows" {
		if err := newKeys(File{"--api-key-file", os.DevNull}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Error(err)
		}
	}
}

// The keys follow their file: within a second of a change, and only then.
func TestKeysFollowTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		write(t, path, "k-one\nk-two\n", start.Add(-time.Hour))
		var log strings.Builder
		keys, err := NewKeys(File{"--api-key-file", path}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		has := func(want string) {
			t.Helper()
			got := ""
			for _, key := range []string{"k-one", "k-two", "k-three", ""} {
				if keys.Has(key) {
					got += key + " "
				}
			}
			if got != want {
				t.Errorf("after %v: keys %q, want %q", time.Since(start), got, want)
			}
		}
		logged := func(want int, what string) {
			t.Helper()
			if n := strings.Count(log.String(), what); n != want {
				t.Errorf("after %v: %d lines with %q, want %d:\n%s", time.Since(start), n, what, want, log.String())
			}
		}
		has("k-one k-two ")

		write(t, path, "k-two\nk-three\n", start.Add(-time.Minute))
		time.Sleep(checkInterval - time.Millisecond)
		has("k-one k-two ") // it was looked at less than a second ago
		time.Sleep(time.Millisecond)
		has("k-two k-three ")
		logged(1, "a changed file is in force")

		// What makes no sense changes nothing and is said once.
		for i, broken := range []string{"", "k-three k-four\n"} {
			for range 3 {
				write(t, path, broken, start.Add(time.Duration(i)*time.Minute))
				time.Sleep(checkInterval)
				has("k-two k-three ")
			}
			logged(i+1, "level=ERROR")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(checkInterval)
		has("k-two k-three ")
		has("k-two k-three ")
		logged(3, "level=ERROR")

		// It is put right with what it held before: said too, because it was wrong.
		write(t, path, "k-two\nk-three\n", start.Add(-time.Minute))
		time.Sleep(checkInterval)
		has("k-two k-three ")
		logged(2, "a changed file is in force")

		// A file that was touched but says the same is no news.
		write(t, path, "k-two\nk-three\n", start.Add(-time.Second))
		time.Sleep(checkInterval)
		has("k-two k-three ")
		logged(2, "a changed file is in force")

		// Two changes within one tick of the file system's clock, of the same size.
		write(t, path, "k-one\n", time.Now())
		time.Sleep(checkInterval)
		has("k-one ")
		write(t, path, "k-two\n", time.Now().Add(-checkInterval))
		time.Sleep(checkInterval)
		has("k-two ")

		// A file that is old is looked at but not read: a change that hides itself is not seen.
		write(t, path, "k-two\n", start.Add(-time.Minute))
		time.Sleep(checkInterval)
		has("k-two ")
		write(t, path, "k-one\n", start.Add(-time.Minute))
		time.Sleep(checkInterval)
		has("k-two ")
		for _, key := range []string{"k-one", "k-two", "k-three", "k-four"} {
			logged(0, key)
		}
	})
}

// Many requests at once, while the file changes and is broken in between: a key
// that every version holds is known at every moment.
func TestKeysUsedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	synctest.Test(t, func(t *testing.T) {
		write(t, path, "always\n", time.Now())
		keys, err := NewKeys(File{"--api-key-file", path}, silent)
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			go func() {
				for range 100 {
					if !keys.Has("always") || keys.Has("never") {
						t.Error("a wrong answer")
					}
					time.Sleep(100 * time.Millisecond)
				}
			}()
		}
		for i := range 10 {
			content := "always\n" + strings.Repeat("other\n", i)
			if i%3 == 2 {
				content = "always never\n"
			}
			write(t, path+".new", content, time.Now())
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(checkInterval)
		}
	})
}

// As a cluster replaces mounted files: a link is led elsewhere.
func TestKeyFollowsItsLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		old := time.Now().Add(-time.Hour)
		write(t, filepath.Join(dir, "v1"), "one", old)
		write(t, filepath.Join(dir, "v2"), "two", old)
		link := filepath.Join(dir, "key")
		if err := os.Symlink("v1", link); err != nil {
			t.Fatal(err)
		}
		key, err := NewKey(File{"--worker-api-key-file", link}, silent)
		if err != nil {
			t.Fatal(err)
		}
		if got := key.Get(); got != "one" {
			t.Error(got)
		}
		os.Symlink("v2", filepath.Join(dir, "new"))
		os.Rename(filepath.Join(dir, "new"), link)
		time.Sleep(checkInterval)
		if got := key.Get(); got != "two" {
			t.Error(got)
		}
	})
}

// An authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key = a.sign(t, "an authority", true)
	return a
}

func (a *authority) sign(t *testing.T, name string, isCA bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := a.cert, a.key
	if isCA {
		template.ExtKeyUsage = nil
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func certPEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// handshake is one connection to a server of this configuration; it returns what
// the client ended up with after a byte from the server.
func handshake(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a net.Pipe would block when both ends write
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		raw, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		conn := tls.Server(raw, server)
		conn.Write([]byte("x"))  // shakes hands before
		io.Copy(io.Discard, raw) // until the client has read its alert, too
		raw.Close()
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(raw, client)
	_, err = io.ReadFull(conn, make([]byte, 1)) // TLS 1.3: only now the client knows that its certificate was taken
	raw.Close()
	<-done
	return conn.ConnectionState(), err
}

func TestServerTLS(t *testing.T) {
	dir := t.TempDir()
	file := func(flag string) File { return File{"--" + flag, filepath.Join(dir, flag)} }
	certificate, key, clientCAs := file("cert"), file("key"), file("ca")
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := newAuthority(t), newAuthority(t)
		put := func(f File, content string) {
			t.Helper()
			write(t, f.Path, content, time.Now())
		}
		putPair := func(c *x509.Certificate, k *ecdsa.PrivateKey) {
			t.Helper()
			put(certificate, certPEM(c))
			put(key, keyPEM(t, k))
		}
		clientCert := func(a *authority) []tls.Certificate {
			c, k := a.sign(t, "client", false)
			return []tls.Certificate{{Certificate: [][]byte{c.Raw}, PrivateKey: k}}
		}
		first, firstKey := ours.sign(t, "baton", false)
		putPair(first, firstKey)
		put(clientCAs, "a comment\n"+certPEM(theirs.cert))
		var log strings.Builder
		config, err := ServerTLS(certificate, key, clientCAs, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		// connect shakes hands as a client that keeps its session.
		client := &tls.Config{RootCAs: ours.pool(), ServerName: "baton", NextProtos: []string{"h2"}, ClientSessionCache: tls.NewLRUClientSessionCache(4)}
		connect := func(with []tls.Certificate) (tls.ConnectionState, error) {
			t.Helper()
			c := client.Clone()
			c.Certificates = with
			return handshake(t, config, c)
		}
		good := clientCert(theirs)
		state, err := connect(good)
		if err != nil || state.NegotiatedProtocol != "h2" {
			t.Fatalf("%v, protocol %q", err, state.NegotiatedProtocol)
		}
		for name, with := range map[string][]tls.Certificate{"none": nil, "of another authority": clientCert(ours)} {
			if _, err := connect(with); err == nil {
				t.Errorf("client certificate %s: let in", name)
			}
		}
		old := client.Clone()
		old.MinVersion, old.MaxVersion, old.Certificates = tls.VersionTLS10, tls.VersionTLS11, good
		if _, err := handshake(t, config, old); err == nil {
			t.Error("TLS 1.1 is spoken")
		}
		old.MaxVersion = tls.VersionTLS12
		if _, err := handshake(t, config, old); err != nil {
			t.Errorf("TLS 1.2: %v", err)
		}

		// Half a renewal changes nothing and is said once.
		second, secondKey := ours.sign(t, "baton", false)
		put(certificate, certPEM(second))
		for range 3 {
			time.Sleep(checkInterval)
			if state, err := connect(good); err != nil || !state.PeerCertificates[0].Equal(first) {
				t.Fatalf("in the middle of a renewal: %v", err)
			}
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "--cert "+certificate.Path+" and --key "+key.Path) {
			t.Errorf("%d errors in %s", n, log.String())
		}
		put(key, keyPEM(t, secondKey))
		time.Sleep(checkInterval)
		if state, err := connect(good); err != nil || !state.PeerCertificates[0].Equal(second) {
			t.Errorf("after the renewal: %v", err)
		}

		// An authority that is gone is gone for sessions that it let in, too.
		put(clientCAs, certPEM(ours.cert))
		time.Sleep(checkInterval)
		if _, err := connect(good); err == nil {
			t.Error("a client of an authority that is no longer in the file is let in")
		}
		if _, err := connect(clientCert(ours)); err != nil {
			t.Errorf("the new authority's client: %v", err)
		}
	})
}

func TestExpiredCertificateIsSaid(t *testing.T) {
	dir := t.TempDir()
	certificate, key := File{"--cert", filepath.Join(dir, "cert")}, File{"--key", filepath.Join(dir, "key")}
	synctest.Test(t, func(t *testing.T) {
		c, k := newAuthority(t).sign(t, "baton", false)
		write(t, certificate.Path, certPEM(c), time.Now())
		write(t, key.Path, keyPEM(t, k), time.Now())
		for _, want := range []bool{false, true} {
			var log strings.Builder
			if _, err := ServerTLS(certificate, key, File{}, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(log.String(), "expired"); got != want {
				t.Errorf("at %v: %q", time.Now(), log.String())
			}
			time.Sleep(2 * time.Hour)
		}
	})
}

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t)
	cert, key := a.sign(t, "baton", false)
	_, otherKey := a.sign(t, "baton", false)
	files := map[string]string{
		"cert": certPEM(cert), "key": keyPEM(t, key), "other": keyPEM(t, otherKey), "text": "hello",
		"broken": certPEM(cert) + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no")})),
	}
	for name, content := range files {
		write(t, filepath.Join(dir, name), content, time.Now())
	}
	path := func(name string) string {
		if name == "" {
			return ""
		}
		return filepath.Join(dir, name)
	}
	for _, tt := range [][4]string{
		{"cert", "other", "", "--c DIR/cert and --k DIR/other: tls: private key does not match public key"},
		{"text", "key", "", "--c DIR/text and --k DIR/key: tls: failed to find any PEM data in certificate input"},
		{"none", "key", "", "--c DIR/none: "},
		{"cert", ".", "", "--k DIR: this is a folder, not a file"},
		{"cert", "key", "key", "--a DIR/key: there is no PEM certificate in the file"},
		{"cert", "key", "broken", "--a DIR/broken: certificate 2: "},
	} {
		_, err := ServerTLS(File{"--c", path(tt[0])}, File{"--k", path(tt[1])}, File{"--a", path(tt[2])}, silent)
		if want := strings.ReplaceAll(tt[3], "DIR", dir); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func BenchmarkHas(b *testing.B) {
	path := filepath.Join(b.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(strings.Repeat("a-key-of-some-length\n", 100)), 0o600); err != nil {
		b.Fatal(err)
	}
	keys, err := NewKeys(File{"--api-key-file", path}, silent)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		keys.Has("another-key")
	}
}
