/** Version of the API that this service implements; the product's own version is in `/server_info`. */
export const API_VERSION = '0.53.0';

export const FIRST_TAG = 'Start here';

/** A newcomer's first requests, in this order. */
export const START_HERE = [
  'POST /api/v1/secrets/git-providers',
  'GET /api/user/suggested-tasks',
  'POST /api/v1/app-conversations',
] as const;

export const DESCRIPTION = `Finds a user's open work across GitHub, GitLab and Bitbucket, and has agents do it in sandboxes.

**First steps:** press *Authorize* and enter an API key, then send the three requests of *Start here*.

**Two generations:** \`/api/v1\` is the present one. Operations of the older one, below \`/api\`, stay for the clients that
use them; each that is replaced is marked as deprecated and names the operation that replaces it.

**Versions:** ${API_VERSION} is the version of the API, the one that its clients know. The product has a version of its own,
which \`GET /server_info\` tells.

**Errors:** input that breaks rules is answered with 422 and \`{"detail":[{"loc","msg","type"}]}\`; everything else with a
problem document (RFC 9457) whose \`code\` is stable. With \`Accept: application/problem+json\` the former is one, too: its code
is \`invalid_input\`, and \`errors\` is the list.

**Unknown members** of a body, mostly misspelt ones, are refused with 422 where its schema says \`additionalProperties: false\`.
Elsewhere they are ignored, and named in \`warnings\` or in the header \`X-Ignored-Members\`.

**Requests** may carry an id of their own in the header \`X-Request-Id\` (up to 128 letters, digits, \`.\`, \`_\`, \`:\`,
\`-\`); answers and logs repeat it. Instead of \`X-Session-API-Key\`, the key may come in \`X-Access-Token\` or as
\`Authorization: Bearer\`.`;

/** Tags in the order in which a client uses them. */
export const TAGS: Readonly<Record<string, string>> = {
  [FIRST_TAG]: `Your first three requests:
1. \`${START_HERE[0]}\` stores a token of your git host.
2. \`${START_HERE[1]}\` lists your open work.
3. \`${START_HERE[2]}\` has an agent do one of these tasks, with the model of \`POST /api/v1/settings\`.`,
  Conversations: `Held with agents that work in sandboxes. The words:
- A *start task* is the beginning of a conversation: it is answered at once and ends in \`READY\`, with the conversation's id, or in \`ERROR\`.
- A *conversation* is one agent's work on your messages. Its \`execution_status\` says what the agent does; its \`sandbox_status\`, whether its sandbox runs.
- A *sandbox* is where it works, with files of its own. It is paused when it is idle, and a message resumes it, also after a failure.
- An *agent server* is the program in the sandbox that runs the agent; its address is \`conversation_url\`.
- *Events* are all that happens: messages, actions, observations, errors.
- A *confirmation* is an action that waits for you to accept or reject it.`,
  Events: 'What happened in conversations, searched or streamed.',
  'Suggested tasks': 'Open work across the repositories a user pushed to most recently.',
  Automations: 'Work that begins by itself: on a schedule, by an event, or by hand.',
  'Git providers': "Users' tokens for GitHub, GitLab and Bitbucket, and what can be read with them.",
  Settings: 'What the sessions of a user start with.',
  'Custom secrets': "Named values for a user's agents; never shown again.",
  Skills: 'What agents know besides their instructions.',
  Sandboxes: 'Where agents work: processes or containers, each with files of its own.',
  'Webhook endpoints': 'Addresses of yours that are told what happens to your conversations.',
  Notifications: 'Browsers that are notified when an agent waits, is done or has failed.',
  'Webhook events': 'What is sent to webhook endpoints.',
  'API keys': 'Keys of a user, issued and revoked.',
  Config: 'What clients ask before they do anything, and what there is to choose from.',
  Sessions: 'Of browsers: signing in to the console, and out.',
  Users: 'For administrators.',
  Audit: 'Who did what; for administrators.',
  Health: 'For load balancers and operators; open to everyone.',
  Webhooks: 'For agent servers, with the keys of their sandboxes.',
};
