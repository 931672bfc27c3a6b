module kvdyno/driver

go 1.25
