const NEEDS =
  'It takes a Linux image with glibc 2.28 or newer and libstdc++ (Debian, Ubuntu, Fedora and their like), or one made FROM the image of "npm run image:agent-server".';

/** What a program's last lines say when our Node.js cannot run in an image, and what the image lacks then. */
const SIGNS: [sign: RegExp, lack: (found: string) => string][] = [
  // The file is there; what the kernel does not find is the loader that it names.
  [
    /exec \/opt\/slipway\/bin\/node failed: no such file or directory/i,
    () => 'it has no glibc (Alpine has musl instead)',
  ],
  [/exec \/opt\/slipway\/bin\/node failed: exec format error/i, () => 'it is for another kind of processor'],
  [
    /^\/opt\/slipway\/bin\/node: error while loading shared libraries: ([^\s:]+)/m,
    (library) => `it lacks ${library}`,
  ],
  [
    /^\/opt\/slipway\/bin\/node: .*version `([^\s']+)' not found/m,
    (version) => `its libraries are too old, they lack ${version}`,
  ],
];

/**
 * Why our agent server could not even begin in an image that has none of its own; null when that is not why it ended.
 *
 * @param log the program's last lines
 */
export function imageLack(log: string, image: string): string | null {
  for (const [sign, lack] of SIGNS) {
    const found = sign.exec(log);
    if (found !== null) {
      return `The image ${image} cannot run our agent server: ${lack(found[1] ?? '')}. ${NEEDS}`;
    }
  }
  return null;
}
