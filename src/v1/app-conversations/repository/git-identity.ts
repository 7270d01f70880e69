import type { GitIdentity } from '../../../agent-protocol/git-access.js';

/** Without a name git makes no commit, and an agent is expected to make some. The address is nobody's (RFC 2606). */
const DEFAULT: GitIdentity = { name: 'Slipway', email: 'agent@slipway.invalid' };

/** Who commits in a sandbox: as the settings say, filled up where they say a half. */
export function gitIdentity({
  git_user_name: name,
  git_user_email: email,
}: {
  git_user_name: string | null;
  git_user_email: string | null;
}): GitIdentity {
  const given = { name: oneLine(name), email: oneLine(email) };
  return {
    name: given.name || given.email.split('@', 1)[0] || DEFAULT.name,
    email: given.email || DEFAULT.email,
  };
}

/** git keeps its configuration in lines. */
function oneLine(text: string | null): string {
  return (text ?? '')
    .replaceAll(/[\p{Cc}<>]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
