import { DEFAULT_IDENTITY } from '@slipway/agent-protocol/default-identity.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { log } from '../observability.js';
import { commandOutput } from '../process-tree.js';
import { scriptInView, type ToolView } from '../tool-view.js';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 10_000;
const NAME_COMMITTER = `
git config user.name >/dev/null || git config --global user.name "$1"
git config user.email >/dev/null || git config --global user.email "$2"
`;

/** Names a default committer unless a repository, its setup script or the image already names one. Never rejects. */
export async function nameCommitter(view: ToolView): Promise<void> {
  const { name, email } = DEFAULT_IDENTITY;
  const program = scriptInView(view, NAME_COMMITTER, [name, email]);
  await commandOutput({ ...program, timeoutMs: TIMEOUT_MS }, MAX_OUTPUT).catch((error: unknown) =>
    log('warn', 'failed to name the committer', { error: errorMessage(error) }),
  );
}
