import { call, say, type ScriptedAnswer } from '../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { ChatMessage, Script } from '../packages/agent-server/test/fakes/scripted-llm.js';
import { LOOP_CAUSES, loopModel } from './automations-model.js';
import { byTurn, finish, shell } from './by-turn.js';
import { checkOf, DEMO_WORK, type DemoWork } from './demo-work.js';

const COMMIT = 'git add --all && git commit --quiet --message';
const LAST = 'git log --oneline -1';

/** Makes a branch, with a number behind its name where the repository has it from another start of the same task. */
const newBranch = (name: string): string =>
  `git checkout --quiet -b ${name}$(git branch --remotes --list "origin/${name}*" | sed -n '$=')`;

/** How each kind of work begins. What follows is the same for all: mend, check, commit. */
const BEGINNINGS: Record<
  DemoWork['kind'],
  (work: DemoWork) => { text: string; command: string; why: string }
> = {
  conflict: () => ({
    text: 'I merge main into the branch.',
    command: 'git merge origin/main',
    why: 'Both sides meant something, so both stay.',
  }),
  check: () => ({
    text: 'First I look at the failing check.',
    command: 'sh check.sh',
    why: 'That is the cause.',
  }),
  comment: ({ script, comment = '' }) => ({
    text: `Tom asks: "${comment}"`,
    command: `cat ${script}`,
    why: 'He is right.',
  }),
  open: ({ script }) => ({
    text: 'I read what the branch does, and what is missing.',
    command: `git diff --stat origin/main... && cat ${script} && sh check.sh`,
    why: 'It works, but nobody could know how to use it.',
  }),
  issue: (work) => ({
    text: 'A check shows the problem first.',
    command: `cat >checks/${work.script} <<'END'\n${checkOf(work)}END\nsh check.sh`,
    why: 'It fails as the issue says.',
  }),
};

/** @param made the branch that the commit is on */
function stepsFor(work: DemoWork, title: string, made: string): ScriptedAnswer[] {
  const { branch, script, edit, kind, subject, number } = work;
  const { text, command, why } = BEGINNINGS[kind](work);
  const isNew = kind === 'issue';
  const commit = `${COMMIT} "${subject}"`;
  return [
    shell(text, `${isNew ? newBranch(branch) : `git checkout --quiet ${branch}`} && ${command}`),
    shell(why, `sed -i '${edit}' ${script} && sh check.sh`),
    shell(
      'The checks pass, so I commit.',
      isNew ? `${commit} && ${LAST} --decorate` : `${commit} && git push --quiet origin ${branch} && ${LAST}`,
    ),
    ...(isNew
      ? [call('create_pull_request', { source_branch: made, title, body: `This resolves #${number}.` })]
      : []),
    finish(
      `Committed: ${subject}. The checks pass, and the change is ${isNew ? 'a pull request' : `on ${branch}`}.`,
    ),
  ];
}

const INSTRUCTIONS = `# For agents

- \`sh check.sh\` runs all checks; run it before every commit.
- A script and its check have the same name: \`x.sh\`, \`checks/x.sh\`.
- Subjects of commits begin with \`fix:\`, \`feat:\` or \`docs:\`.
`;

const WRITING: ScriptedAnswer[] = [
  shell('I look through the repository, and try what README says.', 'ls && cat README.md && sh check.sh'),
  shell(
    'Now I write down what I could confirm.',
    `${newBranch('docs/agents')} && cat >AGENTS.md <<'END'\n${INSTRUCTIONS}END\ncat AGENTS.md`,
  ),
  shell('', `${COMMIT} "docs: instructions for agents" && ${LAST}`),
  finish('AGENTS.md is written and committed. Open pull request, when you have read it.'),
];

const LATER: ScriptedAnswer[] = [
  shell('I look at the commit once more.', 'git show --stat --format=%an%n%s HEAD'),
  say('That is what I changed and committed, under your name.'),
];

const STRANGE: ScriptedAnswer[] = [
  say('I am a script in place of a model: I know how to do the tasks on the page Work, and nothing else.'),
];

const REFUSED = /could not be opened|git push failed/;
const DONE_BEFORE = /nothing to commit|nothing added to commit/;

/** Does what the first message of the user asks for, and says so where its pull request is refused. */
export const demoModel: Script = (request) => {
  const last = request.messages.at(-1);
  const observed = last?.role === 'tool' ? textOf(last) : '';
  if (REFUSED.test(observed)) {
    return finish(observed);
  }
  if (DONE_BEFORE.test(observed)) {
    return finish('There is nothing left to change: an earlier conversation did this task.');
  }
  const asked = textOf(request.messages.find(({ role }) => role === 'user'));
  if (LOOP_CAUSES.some((cause) => asked.includes(cause))) {
    return loopModel(request);
  }
  if (asked.includes('has no instructions for agents yet')) {
    return byTurn(WRITING, LATER)(request);
  }
  const work = DEMO_WORK.find(
    ({ repository, number }) => asked.includes(repository) && new RegExp(`[#!]${number}\\b`).test(asked),
  );
  const [, title = ''] = /titled "(.+?)"/.exec(asked) ?? [];
  const made = /HEAD -> ([^,)]+)/.exec(observed)?.[1] ?? '';
  return work ? byTurn(stepsFor(work, title, made), LATER)(request) : byTurn(STRANGE)(request);
};

function textOf(message: ChatMessage | undefined): string {
  const { content = '' } = message ?? {};
  return typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join('');
}
