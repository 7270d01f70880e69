import { startDemo } from './start-demo.js';
import { Storyteller } from './storyteller.js';
import { tellConversation, tellStory } from './story.js';

/** Whether the demo ends after the story; the default without a terminal. */
const once = process.argv.includes('--once') || !process.stdout.isTTY;
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
  const teller = new Storyteller(demo.url, demo.apiKey, print);
  const story = async () => {
    await tellStory(demo, teller);
    await tellConversation(demo, teller);
  };
  await Promise.race([story(), stopRequested]);
  if (once) {
    print(
      `\nAt a terminal and without --once, the demo keeps running, and you can try every request at /docs.\n`,
    );
  } else {
    print(`\nTry every request at ${demo.url}/docs (authorize with ${demo.apiKey}). Ctrl-C ends the demo.\n`);
    await stopRequested;
  }
} finally {
  await demo.close();
}
