const VERSION = '1.58.2';

/** The Python SDK with what its workspaces and agents need. */
export const SDK_PACKAGES = ['openhands-sdk', 'openhands-workspace', 'openhands-tools'].map(
  (name) => `${name}==${VERSION}`,
);
