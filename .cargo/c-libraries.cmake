# What the C libraries that cmake builds do without. It shortens a build from nothing; .cargo/config.toml names it.

# libaom: we encode 8 bits a sample, and every function for more would be compiled beside the one for 8.
set(CONFIG_AV1_HIGHBITDEPTH 0 CACHE STRING "")
# Only its command line tools read WebM and scale with libyuv.
set(CONFIG_WEBM_IO 0 CACHE STRING "")
set(CONFIG_LIBYUV 0 CACHE STRING "")
