// Versions of modules and of the toolchain.

package driver

import (
	"runtime"
	"runtime/debug"
)

// ModuleVersion is the version of a module that the plug-in was built with; empty if it was not built with it.
func ModuleVersion(path string) string {
	info, isKnown := debug.ReadBuildInfo()
	if !isKnown {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

// GoVersion is the version of the toolchain that the plug-in was built with.
func GoVersion() string { return runtime.Version() }
