// The virtual counter.
#include "textflag.h"

// func Counter() uint64
TEXT ·Counter(SB), NOSPLIT, $0-8
	WORD $0xD53BE040 // MRS CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET

// func Ordered() uint64
TEXT ·Ordered(SB), NOSPLIT, $0-8
	WORD $0xD5033FDF // ISB SY
	WORD $0xD53BE040 // MRS CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET
