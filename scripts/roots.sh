# System roots for scripts/test-pythons and scripts/test-fresh, which source this. Each needs root for chroot.

# A mirror that lags keeps a Release file past its date; the host's own apt settings say whether that is
# accepted. Signatures are checked in any case.
apt_settings=(--aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"')
if apt-config dump Acquire::Check-Valid-Until 2>/dev/null | grep -qi '"\(false\|no\|0\)"'; then
  apt_settings+=(--aptopt='Acquire::Check-Valid-Until "false"')
fi

# become_root ARGUMENT…: this script again, by sudo. What sudo would drop of pip's, node's and the proxies' settings goes along.
become_root() {
  [ "$(id -u)" = 0 ] && return 0
  command -v sudo >/dev/null || { echo "$(basename "$0"): needs root for chroot, and there is no sudo" >&2; exit 1; }
  mkdir -p build/roots  # the user's own, as all of build/
  local kept=()
  while IFS= read -r setting; do kept+=("$setting"); done < <(handed_on)
  exec sudo env ${kept[@]+"${kept[@]}"} "scripts/$(basename "$0")" "$@"
}

handed_on() { env | grep -iE '^(PIP_[A-Z_]*|NODE_EXTRA_CA_CERTS|[a-z]*_proxy|ROOT_FOLDERS)=' || true; }

# Ubuntu keeps in universe what Debian has in main, and every installation of it has both.
components() { case $1 in jammy | noble) echo main,universe ;; *) echo main ;; esac; }

# emulate ARCH: programs of another architecture run from here on, also those that they start and in a root: qemu, which
# the kernel opens once and keeps.
emulate() {
  [ "$1" != "$(uname -m)" ] || return 0
  local kinds=/proc/sys/fs/binfmt_misc
  scripts/setup emulation
  [ -e $kinds/register ] || mount -t binfmt_misc none $kinds || { echo "$(basename "$0"): the kernel runs no programs of other architectures (binfmt_misc)" >&2; return 1; }
  [ -e "$kinds/qemu-$1" ] || cat "/usr/lib/binfmt.d/qemu-$1.conf" >$kinds/register
}

# The address of Debian's archive, as apt has it here; empty where it has none.
debian_archive() { apt-get indextargets --format '$(REPO_URI)' "Origin: Debian" "Created-By: Packages" | sed -n 1p; }

# As Debian names it.
debian_arch() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) echo "$1" ;; esac; }

# Debian has no package of the keys that sign Ubuntu's archive. Taken from there once, unsigned, and compared with this.
UBUNTU_KEYS=1a4dd63e5c76728960a2edddae22e2e0fc53df8e8b87806deb971030ac704eb0
keyring=()
ubuntu_keys() {
  local keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg from=build/roots/ubuntu-keys
  [ ! -e "$keys" ] || return 0
  if [ ! -e "$from.gpg" ]; then
    rm -rf "$from"
    mkdir -p build/roots
    mmdebstrap --mode=root --variant=extract --include=ubuntu-keyring "${apt_settings[@]}" \
      --aptopt='Acquire::AllowInsecureRepositories "true"' --aptopt='APT::Get::AllowUnauthenticated "true"' \
      jammy "$from" >"$from.log" 2>&1 || { echo "$(basename "$0"): Ubuntu's archive cannot be reached: $from.log" >&2; return 1; }
    echo "$UBUNTU_KEYS  $from$keys" | sha256sum --check --quiet || return 1
    cp "$from$keys" "$from.gpg"
    rm -rf "$from"
  fi
  keyring=(--keyring="$PWD/$from.gpg")
}

# make_root NAME SUITE PACKAGE,…: build/roots/NAME, made once. VARIANT=extract: files alone, nothing is run; so it may
# be of another ARCHITECTURE. MIRROR: that archive alone, without the security updates beside it.
make_root() {
  local name=$1 suite=$2 packages=$3 root=build/roots/$1
  [ -e "$root/.complete" ] && return 0
  scripts/setup roots
  echo "$(basename "$0"): making a root of $suite in $root (about a minute)"
  rm -rf --one-file-system "$root"  # whoever was killed while making it may have left mounts
  mkdir -p build/roots
  case $suite in jammy | noble) ubuntu_keys || return 1 ;; esac
  mmdebstrap --mode=root --variant="${VARIANT:-apt}" --include="$packages" --components="$(components "$suite")" \
    --architectures="$(debian_arch "${ARCHITECTURE:-$(uname -m)}")" "${apt_settings[@]}" ${keyring[@]+"${keyring[@]}"} \
    "$suite" "$root" ${MIRROR:+"$MIRROR"} >"build/roots/$name.log" 2>&1 ||
    { echo "$(basename "$0"): no root of $suite: $(grep -m 1 '^E:' "build/roots/$name.log")" >&2; return 1; }
  touch "$root/.complete"
}

# in_root NAME COMMAND…: its mounts are in a namespace of their own and vanish with it. The folders of the host that
# ROOT_FOLDERS names (a:b) stand there too, to be read; ROOT_ENV is an array of NAME=VALUE.
in_root() {
  local root=build/roots/$1
  shift
  unshare --mount sh -ec '
    root=$1; shift
    mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind /sys "$root/sys"
    IFS=:
    for folder in ${ROOT_FOLDERS:-}; do
      mkdir -p "$root$folder"; mount --bind -o ro "$folder" "$root$folder"
    done
    exec chroot "$root" "$@"' sh "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 ${ROOT_ENV[@]+"${ROOT_ENV[@]}"} "$@"
}
