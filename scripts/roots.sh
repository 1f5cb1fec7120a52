# System roots for scripts/test-pythons and scripts/test-fresh, which source this. Each needs root for chroot.

# A mirror that lags keeps a Release file past its date; the host's own apt settings say whether that is
# accepted. Signatures are checked in any case.
apt_settings=(--aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"')
if apt-config dump Acquire::Check-Valid-Until 2>/dev/null | grep -qi '"\(false\|no\|0\)"'; then
  apt_settings+=(--aptopt='Acquire::Check-Valid-Until "false"')
fi

# become_root ARGUMENT…: this script again, by sudo. What sudo would drop of pip's and the proxies' settings goes along.
become_root() {
  [ "$(id -u)" = 0 ] && return 0
  command -v sudo >/dev/null || { echo "$(basename "$0"): needs root for chroot, and there is no sudo" >&2; exit 1; }
  mkdir -p build/roots  # the user's own, as all of build/
  local kept=()
  while IFS= read -r setting; do kept+=("$setting"); done < <(handed_on)
  exec sudo env ${kept[@]+"${kept[@]}"} "scripts/$(basename "$0")" "$@"
}

handed_on() { env | grep -iE '^(PIP_[A-Z_]*|[a-z]*_proxy|ROOT_FOLDERS)=' || true; }

# Ubuntu keeps in universe what Debian has in main, and every installation of it has both.
components() { case $1 in noble) echo main,universe ;; *) echo main ;; esac; }

# make_root NAME SUITE PACKAGE,…: build/roots/NAME, made once.
make_root() {
  local name=$1 suite=$2 packages=$3 root=build/roots/$1
  [ -e "$root/.complete" ] && return 0
  scripts/setup roots
  echo "$(basename "$0"): making a root of $suite in $root (about a minute)"
  rm -rf "$root"
  mkdir -p build/roots
  mmdebstrap --mode=root --variant=apt --include="$packages" --components="$(components "$suite")" "${apt_settings[@]}" \
    "$suite" "$root" >"build/roots/$name.log" 2>&1 ||
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
