/**
 * One operation on a file of the workspace, as a bash script that runs where tools see the same files:
 * `operation path rest max-bytes max-entries temporary root…`. It writes `kind\0size\0path\0`, then the data of that
 * kind. It enters folders one by one, checks each from inside (`PWD` after `cd -P` has no links) and uses relative
 * names, so no link can redirect it after the check. An opened file is checked again by its descriptor.
 */
export const FILE_SCRIPT = `
operation=$1 path=$2 max_bytes=$4 max_entries=$5 temporary=$6
# The rest of a path whose names are no UTF-8.
[ -z "$3" ] || printf -v path '%s/%b' "\${path%/}" "$3"
shift 6
reply() { printf '%s\\0%s\\0%s\\0' "$1" "$2" "$3"; }
fail() { reply error "\${2:-0}" "$1"; exit 0; }
roots=()
for root; do cd -P -- "$root" 2>/dev/null && roots+=("$PWD"); done

is_inside() {
  local root
  for root in "\${roots[@]}"; do
    case $1/ in "\${root%/}"/*) return 0 ;; esac
  done
  return 1
}

# Goes down to the deepest folder that exists; missing has the rest.
enter() {
  local folder=$1
  missing=()
  until cd -P -- "\${folder:-/}" 2>/dev/null; do
    if [ -e "$folder" ] || [ -L "$folder" ]; then
      cd -P -- "\${folder%/*}/" 2>/dev/null && is_inside "$PWD" || fail outside
      [ -d "$folder" ] && fail denied
      fail blocked
    fi
    missing=("\${folder##*/}" "\${missing[@]}")
    folder=\${folder%/*}
  done
  is_inside "$PWD" || fail outside
}

# Enters the folder of the file, follows a link that the file may be, and sets name.
locate() {
  local hops target
  if cd -P -- "$path" 2>/dev/null; then
    is_inside "$PWD" || fail outside
    fail folder
  fi
  for ((hops = 0; hops < 40; hops++)); do
    name=\${path##*/}
    case $name in '' | . | ..)
      fail changed
    esac
    enter "\${path%/*}"
    [ \${#missing[@]} -eq 0 ] && [ -L "./$name" ] || return 0
    target=$(readlink -n -- "./$name" && printf .) || fail changed
    target=\${target%.}
    case $target in /*) path=$target ;; *) path=$PWD/$target ;; esac
  done
  fail links
}

# Opens the file as descriptor 3.
open_file() {
  [ \${#missing[@]} -eq 0 ] && [ -e "./$name" ] || fail missing
  [ -d "./$name" ] && fail folder
  [ -f "./$name" ] || fail special
  exec 3< "./$name" || fail denied
  local real
  real=$(readlink -n /proc/self/fd/3 && printf .)
  is_inside "\${real%/*}" || fail outside
  [ -f /proc/self/fd/3 ] || fail special
  size=$(stat -L -c %s /proc/self/fd/3) || fail changed
  [ "$size" -le "$max_bytes" ] || fail large "$size"
  reply file "$size" "$PWD/$name"
  exec cat <&3
}

make_folders() {
  local part
  for part in "\${missing[@]}"; do
    mkdir -- "./$part" || [ -d "./$part" ] || fail denied
    cd -P -- "./$part" || fail changed
    is_inside "$PWD" || fail outside
  done
}

list_folder() {
  local entry prefix=$1 depth=$2
  for entry in "./$prefix"*; do
    ((++count > max_entries)) && return
    entry=\${entry#./}
    if [ -d "./$entry" ] && [ ! -L "./$entry" ]; then
      printf '%s/\\0' "$entry"
      case $entry in node_modules | __pycache__) ;; *) ((depth > 1)) && list_folder "$entry/" 1 ;; esac
    else
      printf '%s\\0' "$entry"
    fi
  done
}

case $operation in
  resolve)
    # Links too, as far as they lead somewhere.
    if cd -P -- "$path" 2>/dev/null; then
      is_inside "$PWD" || fail outside
      reply folder 0 "$PWD"
    else
      locate
      printf -v rest '/%s' "\${missing[@]}" "$name"
      [ \${#missing[@]} -gt 0 ] || rest=/$name
      reply target 0 "$PWD$rest"
    fi
    ;;
  enclosing)
    enter "$path"
    reply folder 0 "$PWD"
    ;;
  view)
    if cd -P -- "$path" 2>/dev/null; then
      is_inside "$PWD" || fail outside
      shopt -s nullglob
      count=0
      reply folder 0 "$PWD"
      list_folder '' 2
    else
      locate
      open_file
    fi
    ;;
  read)
    locate
    open_file
    ;;
  write)
    locate
    make_folders
    mode= links=1
    if [ -e "./$name" ]; then
      [ -d "./$name" ] && fail folder
      [ -f "./$name" ] || fail special
      [ -w "./$name" ] || fail denied
      mode=$(stat -c %a -- "./$name") && links=$(stat -c %h -- "./$name") || fail changed
    fi
    # Never what stands there already, nor what a link of that name points to.
    set -C
    cat > "./$temporary" || { rm -f -- "./$temporary"; fail unwritable; }
    # The sender says whether that was all of it; nothing when it ended.
    IFS= read -r verdict <&3
    if [ "$verdict" != keep ]; then
      rm -f -- "./$temporary"
      fail incomplete
    fi
    if [ "$links" -gt 1 ]; then
      # Its other names are kept: the content goes into the same file, which is checked by its descriptor.
      { exec 4<> "./$name"; } 2>/dev/null && real=$(readlink -n /proc/self/fd/4 && printf .) || real=
      if is_inside "\${real%/*}" && [ -f /proc/self/fd/4 ]; then
        cat "./$temporary" >| /proc/self/fd/4 || { rm -f -- "./$temporary"; fail unwritable; }
        rm -f -- "./$temporary"
        reply file "$links" "$PWD/$name"
        exit 0
      fi
      rm -f -- "./$temporary"
      fail changed
    fi
    { [ -z "$mode" ] || chmod "$mode" -- "./$temporary"; } && mv -fT -- "./$temporary" "./$name" || {
      rm -f -- "./$temporary"
      fail unwritable
    }
    reply file 1 "$PWD/$name"
    ;;
  remove)
    locate
    [ \${#missing[@]} -eq 0 ] || fail missing
    rm -f -- "./$name" || fail denied
    reply removed 0 "$PWD/$name"
    ;;
esac
`;
