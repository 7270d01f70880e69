import { COMMAND_LINES } from '../scripts/lib/command-lines.js';
import { loopModel } from './automations-model.js';
import { tellAutomations } from './automations-story.js';
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
const demo = await startDemo(isAboutAutomations ? { script: loopModel } : {});
try {
  const teller = new Storyteller(demo.url, demo.apiKey, print);
  const story = async () => {
    const { id, automationId } = await tell(teller);
    if (once) {
      await tellDeletion(id, teller);
      print(
        `\nAt a terminal and without --once, the demo keeps running, with this conversation in the console.\n`,
      );
    } else {
      print(farewell(demo, id, automationId));
      await stopRequested;
    }
  };
  await Promise.race([story(), stopRequested]);
} finally {
  await demo.close();
}

async function tell(teller: Storyteller): Promise<{ id: string; automationId?: string }> {
  if (isAboutAutomations) {
    return await tellAutomations(demo, teller);
  }
  await tellStory(demo, teller);
  return { id: await tellConversation(demo, teller) };
}

function farewell({ url, apiKey }: Demo, id: string, automationId?: string): string {
  const automation =
    automationId === undefined ? '' : `  Its automation     ${url}/console/automations/${automationId}\n`;
  return `
  This conversation  ${url}/console/conversations/${id}
${automation}  Every request      ${url}/docs
  Key for ${automation === '' ? 'both' : 'all '}       ${apiKey}

  Ctrl-C ends the demo.
`;
}
