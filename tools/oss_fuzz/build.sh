#!/usr/bin/env bash
# Builds the fuzz targets with the compiler, flags and engine that OSS-Fuzz sets, and puts programs, corpora and
# options into $OUT. To try it without their containers, with the libraries that tools/setup installs:
#
#   SRC=/tmp/fuzz OUT=/tmp/fuzz/out WORK=/tmp/fuzz/work CC=clang-19 CXX=clang++-19 LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
#     CFLAGS="-O1 -fsanitize=address,fuzzer-no-link" CXXFLAGS="-O1 -fsanitize=address,fuzzer-no-link" \
#     tools/oss_fuzz/build.sh
set -euo pipefail
# OSS-Fuzz copies this file to $SRC, beside the sources.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$here/opmux
[[ -e $source/CMakeLists.txt ]] || source=$here/../..
source=$(cd "$source" && pwd)
work=$WORK/opmux
mkdir -p "$work" "$OUT"

# A static libyaml that shared libraries can link is needed for the library, not for the fuzz targets; any will do.
yaml_root=$source/build/libyaml
if [[ ! -e $yaml_root/lib/libyaml.a ]]; then
  yaml_root=$work/libyaml
  mkdir -p "$yaml_root/lib" "$yaml_root/include"
  cp /usr/include/yaml.h "$yaml_root/include/"
  cp "$(find /usr/lib -name libyaml.a | head -n 1)" "$yaml_root/lib/"
fi

# The flags contain the sanitizer, so OPMUX_SANITIZE stays empty; _FORTIFY_SOURCE would hide what it should find.
cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_FLAGS_RELWITHDEBINFO=-g1 -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-g1 \
  -DOPMUX_DEVELOPER_MODE=OFF -DOPMUX_FUZZ=ON -DOPMUX_HARDENING=OFF -DOPMUX_YAML_ROOT="$yaml_root" \
  -DOPMUX_TUNE_RUN=OFF \
  -DOPMUX_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DOPMUX_BACKEND_SIMD=OFF -DOPMUX_BACKEND_OPENBLAS=OFF \
  -DOPMUX_BACKEND_ONEDNN=OFF -DOPMUX_BACKEND_OPENCL=OFF -DCMAKE_UNITY_BUILD=ON
cmake --build "$work/build" --target fuzz_targets

while read -r name bytes; do
  program=$work/build/fuzz/${name}_fuzz
  [[ -x $program ]] || continue
  cp "$program" "$OUT/"
  printf '[libfuzzer]\nmax_len = %s\ntimeout = 5\n' "$bytes" >"$OUT/${name}_fuzz.options"
  (cd "$source/tests/fuzz/corpus/$name" && python3 -m zipfile -c "$OUT/${name}_fuzz_seed_corpus.zip" ./*)
done < <(grep -v '^#' "$source/tests/fuzz/limits.txt")
