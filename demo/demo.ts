import { COMMAND_LINES } from '../scripts/lib/command-lines.js';
import { tellAutomation, tellAutomations } from './automations-story.js';
import { type Demo, startDemo } from './start-demo.js';
import { Storyteller } from './storyteller.js';
import { tellConversation, tellDeletion, tellStory } from './story.js';

const commandLine = COMMAND_LINES['demo/demo.ts'].parse();
/** Whether the demo ends after the story; the default without a terminal. */
const once = commandLine.opts().once === true || !process.stdout.isTTY;
const isAboutAutomations = commandLine.processedArgs[0] === 'automations';
const print = (text: string) => {
  process.stdout.write(text);
};

const stopRequested = new Promise<void>((resolve) => {
  // The reader has gone (`npm run demo | head`).
  process.stdout.on('error', () => {
    resolve();
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      resolve();
    });
  }
});

print(
  '\n  Slipway with fakes of GitHub, GitLab, Bitbucket and a model, all on this machine. You need no account.\n',
);
const demo = await startDemo();
try {
  const teller = new Storyteller(demo.url, demo.nadia.apiKey, print);
  const story = async () => {
    if (once) {
      const { id } = await tell(teller);
      await tellDeletion(id, teller);
      print(
        `\nAt a terminal and without --once, the demo keeps running, with this conversation in the console.\n`,
      );
    } else {
      const link = await demo.nadia.signInLink();
      print(`\n  Console, as Nadia  ${link}\n`);
      const { id, automationId } = await tell(teller);
      print(farewell(demo, link, id, automationId));
      await stopRequested;
    }
  };
  await Promise.race([story(), stopRequested]);
} finally {
  await demo.close();
}

async function tell(teller: Storyteller): Promise<{ id: string; automationId: string }> {
  if (isAboutAutomations) {
    return await tellAutomations(demo, teller);
  }
  await tellStory(demo, teller);
  const id = await tellConversation(demo, teller);
  return { id, automationId: await tellAutomation(demo, teller) };
}

function farewell({ url, apiKey, nadia }: Demo, link: string, id: string, automationId: string): string {
  const page = `${new URL(link).origin}/console`;
  return `
  Console, as Nadia    ${link}   (once, within ten minutes)
  This conversation    ${page}/conversations/${id}
  Her automation       ${page}/automations/${automationId}   (Run now starts it)
  All her work         ${page}/
  Every request        ${url}/docs
  Nadia's key          ${nadia.apiKey}
  The administrator's  ${apiKey}

  ${isAboutAutomations ? '' : 'npm run demo -- automations tells how a label becomes a green pull request. '}Ctrl-C ends the demo.
`;
}
