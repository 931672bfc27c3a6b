// The plug-in of all engines in Go: there can be only one Go runtime in a process. scripts/go-plugins.sh adds the imports of the
// folders with an engine.toml while it builds, and each package registers its drivers.
package main

func main() {}
