module kvdyno/engines

go 1.25

require kvdyno/driver v0.0.0

replace kvdyno/driver => ../../driver/go
