import { spawnDetached } from './programs.js';
import type { UnixUser } from './unprivileged-user.js';

const LOOKS = 6;

// Titles of PostgreSQL's processes have `[local]` for connections over its socket. A shell takes a megabyte, needs no
// password, and ends when the pid file no longer leads to a server with children.
const SCRIPT = `
server=$1 cluster=$2 pause=$3 looks=$4 unused=0
titles() {
  if [ -r "/proc/$server/task/$server/children" ]; then
    read -r children < "/proc/$server/task/$server/children"
    for child in $children; do
      title=
      read -r title < "/proc/$child/cmdline"
      echo "$title"
    done
  else
    ps -A -o ppid= -o command= | while read -r parent title; do
      if [ "$parent" = "$server" ]; then echo "$title"; fi
    done
  fi
}
while sleep "$pause"; do
  pid=
  if [ -r "$cluster/postmaster.pid" ]; then read -r pid < "$cluster/postmaster.pid"; fi
  if [ "$pid" != "$server" ]; then exit; fi
  case $(titles) in
    *'[local]'*) unused=0 ;;
    *'postgres: '*) unused=$((unused + 1)) ;;
    *) exit ;;
  esac
  if [ "$unused" -ge "$looks" ]; then
    kill -INT "$server"
    exit
  fi
done`;

/** Runs as a process that outlives a killed service. @throws EmbeddedPostgresError without a shell */
export async function stopWhenUnused(
  { pid, cluster, user }: { pid: number; cluster: string; user: UnixUser | null },
  unusedMs: number,
): Promise<void> {
  const pause = (unusedMs / 1000 / LOOKS).toFixed(2);
  const args = ['slipway-postgres-watch', `${pid}`, cluster, pause, `${LOOKS}`];
  await spawnDetached(['/bin/sh', '-c', SCRIPT, ...args], user, 'ignore');
}
