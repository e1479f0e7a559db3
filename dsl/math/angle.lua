-- SPDX-License-Identifier: Apache-2.0
--
-- Angles cut at quarter turns: what sin, cos and tan begin with.
--
--     a = n pi/2 + r,   n = round(2a / pi),  |r| <= pi/4 (and a little),        a = |x|: the sign is put back at the end
--
-- r is hi + lo, good to well below an ULP of r even where a is next to a multiple of pi/2 and nearly all of it cancels.
--
-- Near (a < ANGLE_FAR): pi/2 = HI + MID + LO. HI is pi/2 rounded to the type: a - n HI is exact without HI being shortened,
-- as it is in exp.lua. MID is so short that n MID is exact. hi = (a - n HI) - n MID is rounded, and lo begins with just what
-- that lost: where |hi| is less than 2 n |MID| it is a multiple of MID's last bit and nothing is lost, elsewhere
-- (a - n HI) - hi is exact by Sterbenz.
--
-- Far: after Payne and Hanek. a is an integer times the worth of its last bit, so 2/pi times that worth counts only modulo 4:
-- multiples of 4 quarter turns drop out of the product. A table has these remainders, by a's exponent, in pieces.
--     f32: computed in f64, which is rare enough. Two pieces: the first has 29 bits, times the 24 of a it is exact.
--     f64: a row serves 16 exponents. Four pieces c0 to c3, of 53 bits each, c_k a multiple of 2^(-51 - 53 k) times a's last
--     bit: together good to 2^-140 of a quarter turn. No f64 is nearer to a multiple of pi/2 than 2^-61. The products
--     a c0, a c1, a c2 are exact, as h + l each; the large ones lose their multiples of 4, and the sum is carried in two parts.
-- NaN and infinity come here too, and leave as NaN.

constants {
  -- 3/2 * 2^23 (f64: 2^52): adding it rounds to integer, n is in the low bits.
  ANGLE_SHIFT_F32 = 0x1.8p23,
  ANGLE_SHIFT_F64 = 0x1.8p52,

  ANGLE_2_PI_F32 = 0x1.45f306p-1,
  ANGLE_2_PI_F64 = 0x1.45f306dc9c883p-1,

  -- pi/2 in three parts. n is below 2^12 (f64: 2^25), MID has 12 (27) bits.
  ANGLE_HI_F32  =  0x1.921fb6p0,
  ANGLE_MID_F32 = -0x1.778p-25,
  ANGLE_LO_F32  =  0x1.68c234p-39,
  ANGLE_HI_F64  =  0x1.921fb54442d18p0,
  ANGLE_MID_F64 =  0x1.1a62634p-54,
  ANGLE_LO_F64  = -0x1.d747f23e32ed7p-83,

  ANGLE_FAR_F32 = 0x1.9p12,
  ANGLE_FAR_F64 = 0x1.9p25,

  -- pi/2 as a pair of f64.
  ANGLE_PI_2_HI = 0x1.921fb54442d18p0,
  ANGLE_PI_2_LO = 0x1.1a62633145c07p-54,
}

-- 2/pi times 2^(E - 150), mod 4, for an f32 of exponent field E, at index E mod 128, which is the exponent field of the same
-- number in f64 mod 128 too; divided by 2^(E - 150) again. In two pieces, the first a multiple of 2^-27 (before that division).
-- 2/pi times 2^(16 j - 1075), mod 4, for f64s of exponent field E = 16 j .. 16 j + 15, at index j mod 64; divided by that power
-- of two again and times 2^600, which keeps all of it in the range of f64.
tables {
  ANGLE_F32_0 = { "f64",
    0x1.4p-1, 0x1.48p-1, 0x1.44p-1, 0x1.46p-1,
    0x1.46p-1, 0x1.46p-1, 0x1.46p-1, 0x1.46p-1,
    0x1.45fp-1, 0x1.45fp-1, 0x1.45f4p-1, 0x1.45f4p-1,
    0x1.45f3p-1, 0x1.45f3p-1, 0x1.45f3p-1, 0x1.45f3p-1,
    0x1.45f3p-1, 0x1.45f308p-1, 0x1.45f308p-1, 0x1.45f306p-1,
    0x1.45f307p-1, 0x1.45f307p-1, 0x1.45f306cp-1, 0x1.45f306ep-1,
    -0x1.7419f24p-2, 0x1.17cc1b8p-3, -0x1.d067c92p-4, 0x1.7cc1b7p-7,
    0x1.7cc1b74p-7, 0x1.7cc1b72p-7, -0x1.067c91cp-8, 0x1.f306dcap-9,
    -0x1.9f246cp-14, -0x1.9f246cp-14, -0x1.9f246c8p-14, -0x1.9f246c8p-14,
    -0x1.9f246c6p-14, 0x1.836e4e4p-16, 0x1.836e4e4p-16, -0x1.f246c7p-18,
    -0x1.f246c6ep-18, 0x1.b72722p-23, 0x1.b72722p-23, 0x1.b72722p-23,
    0x1.b72722p-23, 0x1.b72722p-23, -0x1.236377cp-25, -0x1.236377ep-25,
    0x1.b939106p-26, -0x1.1b1bbecp-28, -0x1.1b1bbeap-28, 0x1.c9c882ap-29,
    -0x1.b1bbebp-32, -0x1.b1bbeacp-32, -0x1.b1bbeaep-32, 0x1.391054cp-34,
    0x1.391054ap-34, -0x1.8ddf56cp-35, 0x1.c882a54p-37, 0x1.c882a54p-37,
    -0x1.bbead6p-40, -0x1.bbead6p-40, -0x1.bbead6p-40, 0x1.1054a8p-42,
    0x1.1054a8p-42, -0x1.df56b02p-43, 0x1.054a7fp-46, 0x1.054a7fp-46,
    0x1.054a7fp-46, -0x1.f56b01ep-47, 0x1.529fc2p-52, 0x1.529fc2p-52,
    0x1.529fc28p-52, 0x1.529fc28p-52, 0x1.529fc28p-52, -0x1.5ac07b2p-53,
    0x1.4a7f09ep-54, -0x1.6b01ec6p-55, 0x1.29fc276p-56, -0x1.ac07b16p-57,
    0x1.4fe13acp-59, 0x1.4fe13acp-59, -0x1.603d8a8p-60, 0x1.3f84ebp-61,
    -0x1.80f62ap-62, 0x1.fc2757cp-64, 0x1.fc2757ep-64, -0x1.ec5418p-71,
    -0x1.ec5418p-71, -0x1.ec5418p-71, -0x1.ec5417p-71, -0x1.ec5417p-71,
    -0x1.ec5417p-71, -0x1.ec5417p-71, 0x1.3abe9p-75, 0x1.3abe8f8p-75,
    0x1.3abe8fcp-75, 0x1.3abe8fap-75, -0x1.8a82e0ap-76, 0x1.d5f47d4p-78,
    0x1.d5f47d4p-78, -0x1.505c158p-81, -0x1.505c158p-81, -0x1.505c15ap-81,
    0x1.5f47d4ep-82, -0x1.4170566p-83, 0x1.7d1f534p-84, -0x1.05c1596p-85,
    0x1.f47d4d4p-86, -0x1.70565ap-91, -0x1.705659p-91, -0x1.705659p-91,
    -0x1.705659p-91, -0x1.7056592p-91, 0x1.1f534dep-92, -0x1.c159644p-93,
    0x1.f534dep-96, 0x1.f534ddcp-96, 0x1.f534ddcp-96, -0x1.596448p-101,
    -0x1.596448p-101, -0x1.596448p-101, -0x1.596448p-101, -0x1.596447ep-101,
    0x1.4d37704p-102, -0x1.65911fap-103, 0x1.34ddc0ep-104, 0x1.4p-1,
  },
  ANGLE_F32_1 = { "f64",
    0x1.7cc1b727220a9p-7, -0x1.067c91b1bbeadp-8, 0x1.f306dc9c882a5p-9, -0x1.9f246c6efab58p-14,
    -0x1.9f246c6efab58p-14, -0x1.9f246c6efab58p-14, -0x1.9f246c6efab58p-14, -0x1.9f246c6efab58p-14,
    0x1.836e4e44152ap-16, 0x1.836e4e44152ap-16, -0x1.f246c6efab581p-18, -0x1.f246c6efab581p-18,
    0x1.b727220a94fe1p-23, 0x1.b727220a94fe1p-23, 0x1.b727220a94fe1p-23, 0x1.b727220a94fe1p-23,
    0x1.b727220a94fe1p-23, -0x1.236377d5ac07bp-25, -0x1.236377d5ac07bp-25, 0x1.b9391054a7f0ap-26,
    -0x1.1b1bbead603d9p-28, -0x1.1b1bbead603d9p-28, 0x1.c9c882a53f84fp-29, -0x1.b1bbead603d8bp-32,
    -0x1.b1bbead603d8bp-32, -0x1.b1bbead603d8bp-32, 0x1.391054a7f09d6p-34, 0x1.391054a7f09d6p-34,
    -0x1.8ddf56b01ec54p-35, 0x1.c882a53f84ebp-37, 0x1.c882a53f84ebp-37, -0x1.bbead603d8a83p-40,
    -0x1.bbead603d8a83p-40, -0x1.bbead603d8a83p-40, 0x1.1054a7f09d5f4p-42, 0x1.1054a7f09d5f4p-42,
    -0x1.df56b01ec5417p-43, 0x1.054a7f09d5f48p-46, 0x1.054a7f09d5f48p-46, 0x1.054a7f09d5f48p-46,
    -0x1.f56b01ec5417p-47, 0x1.529fc2757d1f5p-52, 0x1.529fc2757d1f5p-52, 0x1.529fc2757d1f5p-52,
    0x1.529fc2757d1f5p-52, 0x1.529fc2757d1f5p-52, -0x1.5ac07b1505c16p-53, 0x1.4a7f09d5f47d5p-54,
    -0x1.6b01ec5417056p-55, 0x1.29fc2757d1f53p-56, -0x1.ac07b1505c159p-57, 0x1.4fe13abe8fa9ap-59,
    0x1.4fe13abe8fa9ap-59, -0x1.603d8a82e0acbp-60, 0x1.3f84eafa3ea6ap-61, -0x1.80f62a0b82b2dp-62,
    0x1.fc2757d1f534ep-64, 0x1.fc2757d1f534ep-64, -0x1.ec54170565912p-71, -0x1.ec54170565912p-71,
    -0x1.ec54170565912p-71, -0x1.ec54170565912p-71, -0x1.ec54170565912p-71, -0x1.ec54170565912p-71,
    -0x1.ec54170565912p-71, 0x1.3abe8fa9a6eep-75, 0x1.3abe8fa9a6eep-75, 0x1.3abe8fa9a6eep-75,
    0x1.3abe8fa9a6eep-75, -0x1.8a82e0acb223fp-76, 0x1.d5f47d4d37703p-78, 0x1.d5f47d4d37703p-78,
    -0x1.505c1596447e5p-81, -0x1.505c1596447e5p-81, -0x1.505c1596447e5p-81, 0x1.5f47d4d377037p-82,
    -0x1.4170565911f92p-83, 0x1.7d1f534ddc0dbp-84, -0x1.05c1596447e49p-85, 0x1.f47d4d377036ep-86,
    -0x1.70565911f924fp-91, -0x1.70565911f924fp-91, -0x1.70565911f924fp-91, -0x1.70565911f924fp-91,
    -0x1.70565911f924fp-91, 0x1.1f534ddc0db63p-92, -0x1.c1596447e493bp-93, 0x1.f534ddc0db629p-96,
    0x1.f534ddc0db629p-96, 0x1.f534ddc0db629p-96, -0x1.596447e493ad5p-101, -0x1.596447e493ad5p-101,
    -0x1.596447e493ad5p-101, -0x1.596447e493ad5p-101, -0x1.596447e493ad5p-101, 0x1.4d377036d8a56p-102,
    -0x1.65911f924eb53p-103, 0x1.34ddc0db6295ap-104, -0x1.96447e493ad4dp-105, 0x1.a6ee06db14acdp-107,
    0x1.a6ee06db14acdp-107, -0x1.6447e493ad4cep-109, -0x1.6447e493ad4cep-109, 0x1.377036d8a5665p-110,
    -0x1.911f924eb5336p-111, 0x1.bb81b6c52b328p-113, 0x1.bb81b6c52b328p-113, -0x1.11f924eb53362p-115,
    -0x1.11f924eb53362p-115, 0x1.dc0db6295993cp-116, -0x1.1f924eb53361ep-119, -0x1.1f924eb53361ep-119,
    -0x1.1f924eb53361ep-119, 0x1.c0db6295993c4p-120, -0x1.f924eb53361dep-123, -0x1.f924eb53361dep-123,
    -0x1.f924eb53361dep-123, 0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129,
    0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129, 0x1.b6c52b3278872p-129, -0x1.24eb53361de38p-131,
    -0x1.24eb53361de38p-131, 0x1.b6295993c439p-132, -0x1.275a99b0ef1bfp-134, 0x1.7cc1b727220a9p-7,
  },
  ANGLE_F64_0 = { "f64",
    0x1p600, 0x1.45f4p599, 0x1.45f306dcp599, 0x1.45f306dc9c88p599,
    -0x1.9f246c6efab58p586, 0x1.c9c882a53f84ep571, 0x1.054a7f09d5f48p554, 0x1.3f84eafa3ea6ap539,
    0x1.d5f47d4d37704p522, -0x1.c1596447e493ap507, -0x1.6447e493ad4cep491, 0x1.b6c52b327888p471,
    0x1.4acc9e21c821p457, -0x1.b0ef1bef806bcp442, 0x1.c820ff28b1d6p425, 0x1.fe5163abdebcp408,
    -0x1.d38a84288753cp395, 0x1.7bd778ac36e48p379, -0x1.0ea79236e4718p362, 0x1.b7246e3a424ep344,
    0x1.1b8e909374b8p330, -0x1.6f6c8b47fe6dcp314, 0x1.ba5c00c925dd4p299, 0x1.924bba82748p274,
    0x1.25dd413a3243ap267, 0x1.413a32439fc3cp251, -0x1.cdbc603c429c6p235, -0x1.80f10a71a76bp217,
    -0x1.0a71a76b2c608p201, -0x1.a76b2c608bbfp185, 0x1.34e7dd1046beap171, -0x1.177dca0ad145p152,
    0x1.1afa975da2428p137, -0x1.5a28976f62cc8p123, -0x1.2edec598e3f64p106, 0x1.3a671c09ad17cp90,
    -0x1.c7eca5d040df8p73, 0x1.ad17df904e648p58, -0x1.037d8cdc538cp39, 0x1.3991d6398353p24,
    -0x1.c538cf9598c16p11, -0x1.9f2b3182d8dfp-6, -0x1.98c16c6f740e8p-21, -0x1.6c6f740e8840ep-37,
    0x1.17e2ef7e4a0ecp-54, 0x1.77bf250763ff2p-69, -0x1.b5f13801dap-86, -0x1.3801da00087e8p-102,
    -0x1.da00087e99fcp-118, -0x1.0fd33f808688p-139, 0x1.6603fbcbc462cp-150, 0x1.fde5e2316b414p-165,
    0x1.e2316b414da3ep-181, 0x1.6b414da3eda6cp-197, 0x1.4da3eda6cfd9ep-213, -0x1.25930261b06ap-233,
    -0x1.30261b069ec92p-245, 0x1.e4f96136e9e8cp-261, 0x1.6136e9e8c7ecep-277, -0x1.161738132c34p-293,
    0x1.8fd9a797fa8b4p-310, 0x1.a797fa8b5d4ap-326, -0x1.5d28ad84538p-348, 0x1.aea4f758fd7ccp-357,
  },
  ANGLE_F64_1 = { "f64",
    -0x1.7419f246c6efap598, -0x1.f246c6efab58p582, 0x1.391054a7f09d6p566, 0x1.529fc2757d1f8p548,
    -0x1.ec541705659p529, 0x1.5f47d4d377036p518, -0x1.596447e493adp499, -0x1.11f924eb5336p485,
    -0x1.24eb53361de38p469, -0x1.a99b0ef1bef8p454, 0x1.e21c820ff28bp437, -0x1.bef806ba71508p422,
    -0x1.ae9c54214438p400, 0x1.8eaf7aef1586ep390, -0x1.0a21d4f246dc8p373, -0x1.d4f246dc8e2ep357,
    -0x1.236e4716f6c8cp342, 0x1.b8e909374b802p326, 0x1.09374b801924cp310, -0x1.68ffcdb688afcp293,
    0x1.924bba827464p274, 0x1.77504e8c90e8p261, 0x1.3a32439fc3bdp243, -0x1.b78c0788538d4p230,
    -0x1.e214e34ed658p208, -0x1.4e34ed658c118p196, -0x1.3b5963045df72p182, -0x1.63045df7282b4p166,
    -0x1.77dca0ad144b8p148, 0x1.afa975da24274p133, 0x1.75da24274ce38p117, 0x1.1213a671c09aep102,
    -0x1.6638fd94ba08p84, 0x1.c09ad17df904ep70, -0x1.2e8206fb19b8ap54, 0x1.f904e64758e6p38,
    0x1.cc8eb1cc1a99cp21, -0x1.4e33e566305bp5, -0x1.f2b3182d8dee8p-10, 0x1.cfa4e422fc5ep-27,
    -0x1.8dee81d1081b6p-42, 0x1.7e2ef7e4a0ec8p-58, -0x1.081b5f13801dap-74, 0x1.41d8ffc4bfffp-91,
    0x1.ff897ffde0598p-108, -0x1.a00087e99fc04p-122, -0x1.0fd33f8086878p-139, -0x1.9fc04343b9d2ap-154,
    -0x1.0d0ee74a5f59p-172, 0x1.18b5a0a6d1f7p-188, 0x1.6829b47db4dap-202, 0x1.b47db4d9fb3cap-218,
    0x1.b4d9fb3c9f2c2p-234, 0x1.fb3c9f2c26dd4p-250, 0x1.3e584dba7a32p-267, 0x1.36e9e8c7ecd4p-285,
    0x1.3d18fd9a797fap-298, 0x1.fb34f2ff516bcp-315, -0x1.8680574a2b612p-330, -0x1.5d28ad8453818p-348,
    0x1.d49eeb1faf97cp-362, -0x1.14e050683a13p-378, -0x1.41a0e84c2f8c8p-396, -0x1.d0985f18c10fp-413,
  },
  ANGLE_F64_2 = { "f64",
    -0x1.6b01ec5417056p545, -0x1.ec54170565912p529, -0x1.70565911f924p509, -0x1.65911f924eb54p497,
    -0x1.1f924eb53361ep481, 0x1.b14acc9e21c82p465, -0x1.3361de37df00ep449, -0x1.de37df00d74e2p433,
    0x1.07f9458eaf7bp414, -0x1.ae9c5421443a8p400, 0x1.d5ef5de2b0dbap385, -0x1.443a9e48db91cp368,
    -0x1.4f246dc8e2deep353, -0x1.b7238b7b645ap335, -0x1.c5bdb22d1ff9cp320, 0x1.26e9700324978p305,
    0x1.700324977504ep289, -0x1.b6d115f62e6ep272, -0x1.15f62e6de302p256, 0x1.d1921cfe1debp240,
    0x1.0e7f0ef58e58ap225, -0x1.e214e34ed658cp208, 0x1.8e5894d39f744p193, 0x1.29a73ee88236p176,
    -0x1.822efb9415a28p159, 0x1.046bea5d7689p143, -0x1.0568a25dbd8b4p129, -0x1.44bb7b16638fcp112,
    -0x1.bd8b31c7eca5ep97, 0x1.9c7026b45f7e4p80, 0x1.35a2fbf209ccp61, -0x1.d040df633714ep49,
    -0x1.bec66e29c67ccp32, 0x1.91d63983533ap16, -0x1.c67cacc60b638p0, 0x1.a99cfa4e422fcp-15,
    0x1.f49c845f8bbep-32, -0x1.bdd03a21036bep-47, -0x1.d1081b5f138p-66, -0x1.036be27003b4p-79,
    0x1.d8ffc4bffefp-99, -0x1.da00087e9ap-118, -0x1.0fd33f8086p-139, -0x1.fa67f010d0ee8p-144,
    0x1.fde5e2316b4p-165, -0x1.a1dce94beb26p-177, 0x1.8b5a0a6d1f6d4p-192, 0x1.05368fb69b3f6p-207,
    -0x1.704964c0986c2p-223, -0x1.64c0986c1a7b2p-239, -0x1.30d834f648b0cp-256, -0x1.a7b24585ce04p-275,
    0x1.b74f463f669e4p-288, -0x1.738132c3402b8p-305, -0x1.32c3402ba5158p-321, -0x1.a015d28ad8454p-336,
    0x1.16ba93dd63f6p-351, -0x1.6c229c0a0d074p-367, 0x1.63f5f2f8bd9e8p-383, 0x1.f2f8bd9e839dp-399,
    0x1.7b3d0739f78a4p-416, -0x1.7c63043ad6b68p-431, 0x1.f78a5292ea6cp-448, 0x1.29497535fdafep-463,
  },
  ANGLE_F64_3 = { "f64",
    -0x1.6447e493ad4cep491, 0x1.b6c52b3278872p471, -0x1.d6a66c3bc6fbep460, 0x1.93c439041fe51p444,
    0x1.c820ff28b1d5fp425, 0x1.fe5163abdebbcp408, 0x1.163abdebbc562p396, -0x1.421443a9e48dcp380,
    -0x1.0ea79236e4717p362, -0x1.e48db91c5bdb2p348, -0x1.b91c5bdb22d2p332, -0x1.6f6c8b47fe6dbp314,
    0x1.ba5c00c925dd4p299, -0x1.ff9b6d115f62ep284, 0x1.25dd413a3243ap267, -0x1.5f62e6de301e2p252,
    0x1.1921cfe1deb1dp236, 0x1.cfe1deb1cb12ap220, 0x1.deb1cb129a73fp204, 0x1.cb129a73ee882p188,
    -0x1.658c1177dca0bp172, -0x1.177dca0ad144cp152, 0x1.1afa975da2427p137, -0x1.5a28976f62cc7p123,
    -0x1.2edec598e3f65p106, 0x1.3a671c09ad17ep90, 0x1.c7026b45f7e41p76, -0x1.94ba081bec66ep60,
    0x1.f7e413991d63ap44, 0x1.3991d63983534p24, 0x1.1d639835339f5p12, -0x1.9f2b3182d8defp-6,
    0x1.339f49c845f8cp-20, -0x1.6c6f740e8840ep-37, 0x1.17e2ef7e4a0ecp-54, 0x1.77bf250763ff1p-69,
    -0x1.b5f13801da001p-86, -0x1.3801da00087eap-102, -0x1.da00087e99fcp-118, -0x1.0fd33f8086877p-139,
    0x1.6603fbcbc462dp-150, 0x1.fde5e2316b415p-165, -0x1.0ee74a5f592e1p-180, 0x1.6b414da3eda6dp-197,
    0x1.4da3eda6cfd9ep-213, 0x1.f6d367ecf27cbp-228, -0x1.30261b069ec91p-245, 0x1.e4f96136e9e8cp-261,
    0x1.6136e9e8c7ecdp-277, -0x1.161738132c34p-293, 0x1.8fd9a797fa8b6p-310, -0x1.961a015d28ad8p-324,
    0x1.fea2d7527bac8p-340, -0x1.28ad84538141ap-356, -0x1.84538141a0e85p-372, 0x1.faf97c5ecf41dp-390,
    -0x1.a0e84c2f8c608p-404, -0x1.30be31821d6b6p-422, 0x1.ce7de294a4baap-438, -0x1.0eb5ada2b2809p-453,
    0x1.292ea6bfb5fb1p-468, -0x1.59404a04ee073p-484, -0x1.2813b81ca8bdfp-502, -0x1.dc0e545ef53fap-517,
  },
}

func "angle_shifted" {
  doc  = "a / (pi/2) rounded to an integer n, as n + shifter: n is in the low bits. For a < ANGLE_FAR.",
  args = "a",
  f32  = [[ fma(a, ANGLE_2_PI_F32, ANGLE_SHIFT_F32) ]],
  f64  = [[ fma(a, ANGLE_2_PI_F64, ANGLE_SHIFT_F64) ]],
}

func "angle_near_hi" {
  doc  = "The leading part of r = a - n pi/2, from t = angle_shifted(a).",
  args = "a, t",
  f32  = [[
    f32 n = t - ANGLE_SHIFT_F32;
    return fma(n, -ANGLE_MID_F32, fma(n, -ANGLE_HI_F32, a)); ]],
  f64  = [[
    f64 n = t - ANGLE_SHIFT_F64;
    return fma(n, -ANGLE_MID_F64, fma(n, -ANGLE_HI_F64, a)); ]],
  derivation = "tools/fit/angle.py",
}

func "angle_near_lo" {
  doc  = "What angle_near_hi(a, t) leaves out of r.",
  args = "a, t",
  f32  = [[
    f32 n = t - ANGLE_SHIFT_F32;
    f32 d = fma(n, -ANGLE_HI_F32, a) - angle_near_hi(a, t);
    return fma(n, -ANGLE_LO_F32, fma(n, -ANGLE_MID_F32, d)); ]],
  f64  = [[
    f64 n = t - ANGLE_SHIFT_F64;
    f64 d = fma(n, -ANGLE_HI_F64, a) - angle_near_hi(a, t);
    return fma(n, -ANGLE_LO_F64, fma(n, -ANGLE_MID_F64, d)); ]],
  derivation = "tools/fit/angle.py",
}

func "angle_single_product" {
  doc  = "x 2/pi mod 4, but for the second piece of 2/pi; x is the value of an f32, in f64. Exact.",
  args = "x",
  f64  = [[ x * lookup(ANGLE_F32_0, raw_u64(x) >> 52) ]],
  derivation = "tools/fit/angle.py",
}

func "angle_single_turns" {
  doc  = "x 2/pi mod 4, rounded to an integer n, as n + shifter; x is the value of an f32, far, in f64.",
  args = "x",
  f64  = [[ fma(x, lookup(ANGLE_F32_1, raw_u64(x) >> 52), angle_single_product(x)) + ANGLE_SHIFT_F64 ]],
}

func "angle_single_rest" {
  doc  = "r for the value of an f32, far, in f64.",
  args = "x",
  f64  = [[
    f64 p = angle_single_product(x) - (angle_single_turns(x) - ANGLE_SHIFT_F64);
    return ANGLE_PI_2_HI * fma(x, lookup(ANGLE_F32_1, raw_u64(x) >> 52), p); ]],
  derivation = "tools/fit/angle.py",
}

func "angle_mod_4" {
  doc  = "x less a multiple of 4, within [-2, 2].",
  args = "x",
  f64  = [[ fma(rint(0.25 * x), -4.0, x) ]],
}

func "angle_far_0" {
  doc  = "a times the first piece of 2/pi, mod 4: exact.",
  args = "a",
  f64  = [[
    f64 m = a * 0x1p-600;
    f64 c = lookup(ANGLE_F64_0, raw_u64(a) >> 56);
    f64 h = m * c;
    return angle_mod_4(h) + angle_mod_4(fma(m, c, -h)); ]],
  derivation = "tools/fit/angle.py",
}

func "angle_far_1" {
  doc  = "The leading part of a times the second piece of 2/pi, mod 4: exact.",
  args = "a",
  f64  = [[ angle_mod_4(a * 0x1p-600 * lookup(ANGLE_F64_1, raw_u64(a) >> 56)) ]],
  derivation = "tools/fit/angle.py",
}

func "angle_far_count" {
  doc  = "n mod 4, within [-4, 4], far. As a float.",
  args = "a",
  f64  = [[ rint(angle_far_0(a) + angle_far_1(a)) ]],
}

func "angle_far_turns" {
  doc  = "n, far, in the low two bits of a float.",
  args = "a",
  f32  = [[ as_f32((u32)(raw_u64(angle_single_turns((f64)a)) & 3)) ]],
  f64  = [[ angle_far_count(a) + ANGLE_SHIFT_F64 ]],
}

func "angle_far_large" {
  doc  = "What the first two pieces leave of a 2/pi - n, rounded.",
  args = "a",
  f64  = [[ (angle_far_0(a) - angle_far_count(a)) + angle_far_1(a) ]],
}

func "angle_far_small" {
  doc  = "The terms of a 2/pi that are below 2^-36: their leading part.",
  args = "a",
  f64  = [[
    f64 m = a * 0x1p-600;
    f64 b = lookup(ANGLE_F64_1, raw_u64(a) >> 56);
    return fma(m, b, -(m * b)) + m * lookup(ANGLE_F64_2, raw_u64(a) >> 56); ]],
}

func "angle_far_rest" {
  doc  = "a 2/pi - n less angle_far_large + angle_far_small, each rounded: what these roundings and that of their sum lost.",
  args = "a",
  f64  = [[
    f64 m = a * 0x1p-600;
    f64 b = lookup(ANGLE_F64_1, raw_u64(a) >> 56);
    f64 c = lookup(ANGLE_F64_2, raw_u64(a) >> 56);
    f64 d = fma(m, lookup(ANGLE_F64_3, raw_u64(a) >> 56), fma(m, c, -(m * c)));
    f64 b_lo = fma(m, b, -(m * b));
    f64 e = d + sum_lost(b_lo, m * c, b_lo + m * c);
    f64 p = angle_far_0(a) - angle_far_count(a);
    f64 g = e + sum_lost(p, angle_far_1(a), angle_far_large(a));
    f64 u = angle_far_large(a) + angle_far_small(a);
    return g + sum_lost(angle_far_large(a), angle_far_small(a), u); ]],
}

func "angle_far_hi" {
  doc  = "The leading part of r, far.",
  args = "a",
  f32  = [[ (f32)angle_single_rest((f64)a) ]],
  f64  = [[
    f64 u = angle_far_large(a) + angle_far_small(a);
    return ANGLE_PI_2_HI * (u + angle_far_rest(a)); ]],
  derivation = "tools/fit/angle.py",
}

func "angle_far_lo" {
  doc  = "What angle_far_hi(a) leaves out of r.",
  args = "a",
  f32  = [[ (f32)(angle_single_rest((f64)a) - (f64)angle_far_hi(a)) ]],
  f64  = [[
    f64 u = angle_far_large(a) + angle_far_small(a);
    f64 v = angle_far_rest(a);
    f64 f = u + v;
    f64 l = fma(ANGLE_PI_2_LO, f, ANGLE_PI_2_HI * (v - (f - u)));
    return fma(ANGLE_PI_2_HI, f, -angle_far_hi(a)) + l; ]],
  derivation = "tools/fit/angle.py",
}

func "angle_turns" {
  doc  = "n of a = n pi/2 + r, a >= 0, in the low two bits of a float.",
  args = "a",
  f32  = [[
    f32 t = angle_shifted(a);
    rare (!(a < ANGLE_FAR_F32)) { t = angle_far_turns(a); }
    return t; ]],
  f64  = [[
    f64 t = angle_shifted(a);
    rare (!(a < ANGLE_FAR_F64)) { t = angle_far_turns(a); }
    return t; ]],
}

func "angle_hi" {
  doc  = "The leading part of r of a = n pi/2 + r, a >= 0. NaN for NaN and infinity.",
  args = "a",
  f32  = [[
    f32 r = angle_near_hi(a, angle_shifted(a));
    rare (!(a < ANGLE_FAR_F32)) { r = angle_far_hi(a); }
    return r; ]],
  f64  = [[
    f64 r = angle_near_hi(a, angle_shifted(a));
    rare (!(a < ANGLE_FAR_F64)) { r = angle_far_hi(a); }
    return r; ]],
}

func "angle_lo" {
  doc  = "What angle_hi(a) leaves out of r.",
  args = "a",
  f32  = [[
    f32 r = angle_near_lo(a, angle_shifted(a));
    rare (!(a < ANGLE_FAR_F32)) { r = angle_far_lo(a); }
    return r; ]],
  f64  = [[
    f64 r = angle_near_lo(a, angle_shifted(a));
    rare (!(a < ANGLE_FAR_F64)) { r = angle_far_lo(a); }
    return r; ]],
}
