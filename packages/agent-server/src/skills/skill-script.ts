/**
 * Finds and reads skill files below a folder, as a bash script that runs where tools see the same files:
 * `scope folder limit max-files max-bytes nested…`. For each file it writes `kind\0path\0name\0content\0`; the kind
 * `unread` has the reason as its content. No repository is searched for above `limit`. The scope `nested` reads the
 * named rules files, whose names git lists, so that other files need not wait. Only regular files that lie in the
 * repository once links are followed are read: an untrusted repository could link elsewhere.
 */
export const SKILL_SCRIPT = `
scope=$1 folder=$2 limit=$3 max_files=$4 max_bytes=$5
shift 5
count=0
shopt -s nullglob nocaseglob
limit=$(cd -P -- "$limit" 2>/dev/null && printf %s "$PWD")
cd -P -- "$folder" 2>/dev/null || exit 0
folder=$PWD top=$PWD

unread() {
  printf 'unread\\0%s\\0\\0%s\\0' "$1" "$2"
}

emit() {
  local kind=$1 name=$2 file=$3 real
  [ -e "$file" ] || [ -L "$file" ] || return 0
  ((count++ < max_files)) || { unread "$folder" "of its skills, only the first $max_files files are read"; exit 0; }
  [ -f "$file" ] || { unread "$file" 'it is no file'; return 0; }
  { exec 3< "$file"; } 2>/dev/null || { unread "$file" 'it cannot be opened'; return 0; }
  real=$(readlink -n /proc/self/fd/3 && printf .) || return 0
  case $real in "\${top%/}"/*) ;; *) unread "$file" 'it is a link that leaves the repository'; return 0 ;; esac
  [ -f /proc/self/fd/3 ] || return 0
  printf '%s\\0%s\\0%s\\0' "$kind" "$file" "$name"
  # One byte more than is allowed says that there are more. Variables of bash hold no zero byte.
  head -c "$((max_bytes + 1))" <&3 | tr -d '\\0'
  printf '\\0'
}

skills() {
  local base=$1 file name
  [ -d "$base" ] || return 0
  for file in "$base"/*/skill.m[d]; do
    emit skill "\${file#"$base"/}" "$file"
  done
  for file in "$base"/*.m[d] "$base"/*/*.m[d] "$base"/*/*/*.m[d]; do
    name=\${file#"$base"/}
    case \${name##*/} in README.md | [Ss][Kk][Ii][Ll][Ll].[Mm][Dd]) continue ;; esac
    # Whatever else lies in the folder of a SKILL.md belongs to it.
    case $name in */*) set -- "$base/\${name%%/*}"/skill.m[d]; [ $# -eq 0 ] || continue ;; esac
    emit skill "$name" "$file"
  done
}

if [ "$scope" = user ]; then
  for base in .agents/skills .openhands/skills .openhands/microagents; do
    skills "$folder/$base"
  done
  exit 0
fi

if [ "$scope" = plugin ]; then
  skills "$folder/skills"
  exit 0
fi

while [ ! -e "$top/.git" ]; do
  case $top in "$limit"/*) top=\${top%/*} ;; *) top=$folder; break ;; esac
done
if [ "$scope" = nested ]; then
  for name; do
    emit rules "$name" "$folder/$name"
  done
  exit 0
fi

roots=("$folder")
[ "$top" = "$folder" ] || roots+=("$top")
for root in "\${roots[@]}"; do
  for file in "$root"/.cursorrule[s] "$root"/agents.m[d] "$root"/agent.m[d] "$root"/claude.m[d] "$root"/gemini.m[d]; do
    emit rules "\${file##*/}" "$file"
  done
done
for root in "\${roots[@]}"; do
  for base in .agents/skills .openhands/skills .openhands/microagents; do
    skills "$root/$base"
  done
done
`;
