// Loaded before the service (--import): its clock is ahead by the milliseconds in the file `…?file=NAME`, from the next SIGUSR2 on.
// Only Date steps, as it does for every program when the machine's clock is set; timers and monotonic time go on.
import { readFileSync } from 'node:fs';

const file = new URL(import.meta.url).searchParams.get('file');
const RealDate = Date;
let ahead = 0;

process.on('SIGUSR2', () => {
  ahead = Number(readFileSync(file, 'utf8'));
});

const now = () => RealDate.now() + ahead;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
