import { startDemo } from './start-demo.js';
import { Storyteller } from './storyteller.js';
import { tellConversation } from './tell-conversation.js';
import { tellStory } from './tell-story.js';

/** Not at a terminal, or asked for it: end after the story. */
const once = process.argv.includes('--once') || !process.stdout.isTTY;
const print = (text: string) => {
  process.stdout.write(text);
};

const asked = new Promise<void>((resolve) => {
  // Nobody reads any more (`npm run demo | head`).
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
  '\n  Slipway with stand-ins of GitHub, GitLab, Bitbucket and a model, all on this machine. No account is needed.\n',
);
const demo = await startDemo();
try {
  const teller = new Storyteller(demo.url, demo.apiKey, print);
  const story = async () => {
    await tellStory(demo, teller);
    await tellConversation(demo, teller);
  };
  await Promise.race([story(), asked]);
  if (once) {
    print(`\nWithout --once, at a terminal, it keeps running, with every request to try at /docs.\n`);
  } else {
    print(`\nTry every request at ${demo.url}/docs (authorize with ${demo.apiKey}). Ctrl-C ends the demo.\n`);
    await asked;
  }
} finally {
  await demo.close();
}
