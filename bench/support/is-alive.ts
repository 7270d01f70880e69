/** Whether an agent server answers at an address. */
export async function isAlive(address: string): Promise<boolean> {
  try {
    const response = await fetch(`${address}/alive`, { headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.ok;
  } catch (error) {
    // fetch's own word for a connection that was refused.
    if (error instanceof TypeError) {
      return false;
    }
    throw error;
  }
}
