import { runAgentServer } from './run-agent-server.js';

await runAgentServer(async ({ conversationId, toolEnvironment }, { webhook, sessionKeys, toolWrapper }) => {
  // Only when the first conversation runs: the AI SDK takes longer to load than all the rest.
  const { NativeEngine } = await import('./engine/native/native.engine.js');
  const { postPullRequest } = await import('./tools/post-pull-request.js');
  const [sessionKey] = sessionKeys;
  const offersPullRequests = webhook !== null && sessionKey !== undefined;
  return new NativeEngine({
    shellWrapper: toolWrapper,
    pullRequests: offersPullRequests
      ? {
          open: postPullRequest({ url: `${webhook.baseUrl}/pull-requests`, sessionKey, conversationId }),
          gitEnvironment: toolEnvironment,
        }
      : null,
  });
});
// Whatever a tool server or an idle connection still holds open: all is on the disk.
process.exit();
