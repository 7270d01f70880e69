import { RemoteAccess } from '../../git/remote-access.js';
import { postPullRequest } from '../../tools/post-pull-request.js';
import type { EngineContext } from '../engine-context.js';
import type { EngineSurroundings } from '../engine-surroundings.js';
import { NativeEngine } from './native.engine.js';

/** Our own engine for a conversation, with all that its server can offer it. */
export function createNativeEngine(
  { conversationId, gitAccess }: EngineContext,
  { webhook, sessionKeys: [sessionKey], toolWrapper, environment, conversationsPath }: EngineSurroundings,
): NativeEngine {
  const access = new RemoteAccess({
    environment,
    wrapper: toolWrapper,
    privateFolder: conversationsPath,
    credentials: () => gitAccess()?.credentials ?? [],
  });
  return new NativeEngine({
    shellWrapper: toolWrapper,
    remoteAccess: () => (isShellWithout(gitAccess()) ? access : null),
    pullRequests:
      webhook === null || sessionKey === undefined
        ? null
        : {
            open: postPullRequest({ url: `${webhook.baseUrl}/pull-requests`, sessionKey, conversationId }),
            push: async (folder, branch, signal) => await access.push(folder, branch, signal),
          },
  });
}

/** Whether there are credentials that the shell does not get. */
function isShellWithout(git: ReturnType<EngineContext['gitAccess']>): boolean {
  return git !== null && !git.expose && git.credentials.length > 0;
}
