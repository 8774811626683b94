# Starts the ssh server of one node: SHARED NODE ADDRESS PORT FOLDER.
# Host and user key are made by node 1 for this trial alone; nothing of the user's own ~/.ssh is read.
set -eu
shared=$1 node=$2 address=$3 port=$4 folder=$5
umask 077
keys=$shared/keys
if [ "$node" = 1 ]; then
    rm -rf "$keys"
    mkdir "$keys"
    ssh-keygen -q -t ed25519 -N '' -C tare -f "$keys/host"
    ssh-keygen -q -t ed25519 -N '' -C tare -f "$keys/user"
    read -r kind key rest < "$keys/host.pub"
    echo "tare-node $kind $key" > "$keys/known"
fi
{
    echo "Port $port"
    echo "ListenAddress $address"
    echo "HostKey \"$keys/host\""
    echo "AuthorizedKeysFile \"$keys/user.pub\""
    echo "AuthenticationMethods publickey"
    echo "PermitRootLogin prohibit-password"
    echo "UsePAM no"
    echo "StrictModes no"
    echo "PidFile none"
    echo "PrintMotd no"
    echo "LogLevel ERROR"
    echo "SetEnv \"TMPDIR=$folder\" TARE_RUN=${TARE_RUN:-none}"
} > "$folder/sshd_config"
start='exec /usr/sbin/sshd -D -e -f "$0/sshd_config"'
# A server of root's wants this folder. A root of Tare's own can have it; the host's is covered for this
# server alone by what it is and the folder, read-only.
if [ ! -d /run/sshd ] && [ -w /run ]; then
    if [ -x /tare-agent ]; then
        mkdir /run/sshd
    else
        mkdir -p "$folder/run/sshd"
        cover='mount -t overlay tare -o "lowerdir=$0/run:/run" /run'
        exec unshare --mount --propagation private sh -c "$cover && $start" "$folder"
    fi
fi
exec sh -c "$start" "$folder"
