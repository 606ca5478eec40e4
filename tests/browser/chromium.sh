#!/bin/sh
# A Chromium for the browser tests: one that is installed, or Debian's package where root runs this.
# Never a downloaded browser build. Exit code 0 whatever comes of it: the tests say what they skip.

for name in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
  if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
if [ -n "${CHROMIUM:-}" ]; then
  echo "No $CHROMIUM here (CHROMIUM): the browser tests, with those of the JavaScript client in Chromium, will be skipped."
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo 'Installing the package chromium for the browser tests (about a minute, once)'
  export DEBIAN_FRONTEND=noninteractive
  if timeout 300 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium' \
    >/dev/null 2>&1; then exit 0; fi
  echo 'The package chromium could not be installed.'
fi
echo 'No Chromium here: the browser tests, with those of the JavaScript client in Chromium, will be skipped. Install the package chromium to run them.'
