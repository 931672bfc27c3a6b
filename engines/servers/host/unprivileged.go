// Servers that refuse to run as root.

package host

import (
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
	number := func(of int) []syscall.SysProcIDMap {
		inside := of
		if of == 0 {
			inside = 1000
		}
		return []syscall.SysProcIDMap{{ContainerID: inside, HostID: of, Size: 1}}
	}
	attributes.UidMappings, attributes.GidMappings = number(os.Getuid()), number(os.Getgid())
	return nil
}

// demote starts the process as another user, if this one is root, and gives that user the folder. This is for machines that
// allow no user namespaces.
func demote(folder string) func(*syscall.SysProcAttr) error {
	return func(attributes *syscall.SysProcAttr) error {
		attributes.Cloneflags, attributes.UidMappings, attributes.GidMappings = 0, nil, nil
		if os.Getuid() != 0 {
			return nil
		}
		found, err := user.Lookup("nobody")
		if err != nil {
			return err
		}
		uid, err1 := strconv.ParseUint(found.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(found.Gid, 10, 32)
		if err1 != nil || err2 != nil {
			return err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, int(uid), int(gid))
		})
	}
}
