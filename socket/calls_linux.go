//go:build !race && !386 && !s390x

package socket

import (
	"syscall"
	"unsafe"
)

// read and write are for descriptors that do not block. p is not empty. The system
// calls are those for sockets only, which have less to ask about a descriptor; the
// architectures that have none of their own go the usual way.

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(syscall.SYS_RECVFROM, fd, p, 0)
}

func write(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(syscall.SYS_SENDTO, fd, p, syscall.MSG_NOSIGNAL)
}

func call(number, fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		switch err {
		case 0:
			return int(n), 0
		case syscall.EINTR:
			continue
		}
		return 0, err
	}
}
