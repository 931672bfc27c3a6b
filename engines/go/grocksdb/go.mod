module kvdyno/engines/grocksdb

go 1.25.0

require kvdyno/driver v0.0.0

require github.com/linxGnu/grocksdb v1.7.15

replace kvdyno/driver => ../../../driver/go
