import { describe, expect, it } from '@jest/globals';
import { parseProcess, readProcess } from './end-processes.js';

const REST = '0 -1 FLAGS 1 2 3 4 5 6 7 8 20 0 1 0 4711 5 6';
const stat = (pid: number, name: string, parent: number, flags: number): string =>
  `${pid} (${name}) S ${parent} 30 40 ${REST.replace('FLAGS', String(flags))}\n`;

describe('what the kernel knows of a process', () => {
  it.each(['node', 'a b', 'odd) R 9 (name'])('is read behind the name "%s"', (name) => {
    expect(parseProcess(12, stat(12, name, 7, 4_194_304))).toEqual({
      pid: 12,
      parent: 7,
      group: 30,
      session: 40,
      startTime: '4711',
      isKernelThread: false,
    });
  });

  it.each([
    ['the parent of the kernel threads', stat(2, 'kthreadd', 0, 2_129_984), true],
    ['a kernel thread', stat(15, 'rcu_preempt', 2, 2_129_984), true],
    // In a pid namespace, as the agent server in its sandbox, and all that it starts.
    ['the second process of a namespace', stat(2, 'node', 1, 4_194_304), false],
    ['a child of that one', stat(15, 'bash', 2, 4_194_560), false],
  ])('recognises %s by its flags', (_who, text, isKernelThread) => {
    expect(parseProcess(1, text)).toMatchObject({ isKernelThread });
  });

  it.each(['', stat(12, 'gone', 1, 0).replace(' S ', ' Z ')])('is null for %j', (text) => {
    expect(parseProcess(12, text)).toBeNull();
  });

  it('knows this process', () => {
    expect(readProcess(process.pid)).toMatchObject({ parent: process.ppid, isKernelThread: false });
  });
});
