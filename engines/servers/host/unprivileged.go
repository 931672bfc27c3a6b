// Servers that refuse to run as root.

package host

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// isolate starts the process in its own user namespace, where this user has another number than root's, and in its own
// IPC namespace, so that no shared memory is left when it is killed. Its files are this user's.
func isolate(attributes *syscall.SysProcAttr) error {
	attributes.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWIPC
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		// Its number must be that of some user, because programs look up their user's name.
		own, other, err := nobody()
		if err != nil {
			return err
		}
		uid, gid = int(own), int(other)
	}
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: os.Getgid(), Size: 1}}
	return nil
}

// nobody has the numbers of a user without rights.
func nobody() (uid, gid uint32, err error) {
	found, err := user.Lookup("nobody")
	if err != nil {
		return 0, 0, err
	}
	own, err1 := strconv.ParseUint(found.Uid, 10, 32)
	group, err2 := strconv.ParseUint(found.Gid, 10, 32)
	return uint32(own), uint32(group), errors.Join(err1, err2)
}

// demote starts the process as another user, if this one is root, and gives that user the folder. This is for machines that
// allow no user namespaces.
func demote(folder string) func(*syscall.SysProcAttr) error {
	return func(attributes *syscall.SysProcAttr) error {
		attributes.Cloneflags, attributes.UidMappings, attributes.GidMappings = 0, nil, nil
		if os.Getuid() != 0 {
			return nil
		}
		uid, gid, err := nobody()
		if err != nil {
			return err
		}
		attributes.Credential = &syscall.Credential{Uid: uid, Gid: gid}
		return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, int(uid), int(gid))
		})
	}
}
