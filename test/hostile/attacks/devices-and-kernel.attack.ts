import { z } from 'zod';
import { type Attack, held, notPromised } from '../attack.js';

/** Opens for writing, and writes nothing. */
const OPEN = `
import { closeSync, constants, openSync, readdirSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
const able = [];
const attempt = (name, flags) => { try { closeSync(openSync(name, flags)); able.push(name); } catch {} };
const list = (folder) => { try { return readdirSync(folder); } catch { return []; } };
const usual = /^(null|zero|full|random|urandom|tty|ptmx|console|core|fd|std(in|out|err)|pts|shm|mqueue)$/;
for (const name of list('/dev').filter((entry) => !usual.test(entry))) attempt('/dev/' + name, constants.O_RDONLY | constants.O_NONBLOCK);
for (const name of ['mem', 'kmem', 'port', 'kmsg', 'fuse', 'kvm', 'net/tun', 'sda', 'vda', 'nvme0n1']) attempt('/dev/' + name, constants.O_RDWR | constants.O_NONBLOCK);
for (const name of ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/vm/overcommit_memory', '/proc/sysrq-trigger', '/proc/kcore',
  '/sys/kernel/uevent_helper', '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/fs/cgroup/release_agent', '/sys/fs/cgroup/cgroup.procs',
  '/sys/fs/cgroup/memory/release_agent', '/sys/fs/cgroup/memory/cgroup.procs']) attempt(name, constants.O_WRONLY);
for (const [kind, major, minor] of [['c', 1, 1], ['b', 8, 0], ['b', 254, 0]]) {
  const name = process.env.HOME + '/node-' + major + '-' + minor;
  if (spawnSync('mknod', [name, kind, String(major), String(minor)]).status === 0) attempt(name, constants.O_RDONLY | constants.O_NONBLOCK);
}
console.log(JSON.stringify([...new Set(able)]));
`;

export const devicesAndKernel: Attack = {
  name: 'devices-and-kernel',
  finding: 'held',
  what: "Bob's tool opens disks and memory as devices, makes devices, and opens switches of the kernel for writing.",
  expected: {
    process: held('neither a device of the machine nor a switch of the kernel opens'),
    unwrapped: notPromised("the machine's own permissions decide"),
    docker: held('neither a device of the machine nor a switch of the kernel opens'),
    kubernetes: held('neither a device of the machine nor a switch of the kernel opens'),
  },
  run: async ({ bob }) => {
    const able = z.array(z.string()).parse(await bob.nodeJson(OPEN));
    return { held: able.length === 0, seen: able.length === 0 ? 'none opens' : `open: ${able.join(', ')}` };
  },
};
