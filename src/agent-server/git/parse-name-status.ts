import type { GitChange } from '../../agent-protocol/git-changes.js';

/** `git diff --name-status -z --no-renames`: status and path in turns, each ended by a zero byte. */
export function parseNameStatus(output: string): GitChange[] {
  const fields = output.split('\0');
  const changes: GitChange[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [status = '', path = ''] = [fields[index], fields[index + 1]];
    changes.push({ status: STATUSES[status] ?? 'UPDATED', path });
  }
  return changes;
}

const STATUSES: Record<string, GitChange['status']> = { A: 'ADDED', D: 'DELETED' };
