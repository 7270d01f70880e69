import { call } from '../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { LOOP_BRANCH, LOOP_ISSUE } from './automations-world.js';
import { byTurn, finish, shell } from './by-turn.js';

export const LOOP_PROMPT = 'Print a label for every kind of postcode, and mend what comes out wrong.';

/** One of them is in what an automation tells its agent. */
export const LOOP_CAUSES: readonly string[] = [LOOP_PROMPT, LOOP_ISSUE.title];

const commit = (message: string, then: string) =>
  shell('', `git commit --quiet --all --message "${message}" && ${then}`);
const PUSH = `git push --quiet origin ${LOOP_BRANCH} && git log --oneline -1`;

/** Answers to the automation's prompt, to the failing check, and to the comment. */
export const loopModel = byTurn(
  [
    shell('First I look at what is printed.', 'cat label.sh && sh label.sh 01067'),
    shell(
      'Five digits, then.',
      String.raw`sed -i 's/^expr.*/printf "%05d\\n" "$1"/' label.sh && tail -1 label.sh`,
    ),
    commit(
      'fix: print five digits of a postcode',
      `git branch --move ${LOOP_BRANCH} && git log --oneline -1`,
    ),
    call('create_pull_request', {
      source_branch: LOOP_BRANCH,
      title: 'Print five digits of a postcode',
      body: 'An addition took the leading zero away.',
    }),
    finish('Postcodes have five digits again. The pull request is open.'),
  ],
  [
    shell('For printf 01067 is octal. A postcode is text.', "sed -i 's/%05d/%s/' label.sh && sh check.sh"),
    commit('fix: print a postcode as it is', PUSH),
    finish('A postcode is printed as it is now; printf read it as an octal number.'),
  ],
  [
    shell('Such a label must fail.', `sed -i 's/"$1"/"\${1:?no postcode}"/' label.sh && sh check.sh`),
    commit('fix: refuse a label without a postcode', PUSH),
    finish('Without a postcode the script now fails and says so.'),
  ],
);
