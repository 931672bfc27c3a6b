module kvdyno/tests/hostile

go 1.25.0

require kvdyno/driver v0.0.0

replace kvdyno/driver => ../../../driver/go
