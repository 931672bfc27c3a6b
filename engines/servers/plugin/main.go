// A separate plug-in with the drivers of servers and clusters, so that the other engines in Go build without their clients.
// scripts/go-plugins.sh adds the imports of the folders with an engine.toml while it builds, and each package registers its driver.
package main

func main() {}
